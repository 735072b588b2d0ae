//! What a sandbox noticed and its end must tell, whatever the code under test did with the error.

use hermetic_abi::{finding, Finding};

/// Different findings kept per sandbox; more of them only raise [`Findings::dropped`].
pub const FINDINGS_MAX: usize = 64;

/// A bounded list without repeats. Memory is taken when the sandbox is made, not when something is found.
pub struct Findings {
    list: Vec<Finding>,
    dropped: u32,
}

impl Default for Findings {
    fn default() -> Findings {
        Findings { list: Vec::with_capacity(FINDINGS_MAX), dropped: 0 }
    }
}

impl Findings {
    pub fn clear(&mut self) {
        self.list.clear();
        self.dropped = 0;
    }

    /// Adds a finding, or counts it if an equal one is there.
    pub fn add(&mut self, new: &Finding) {
        let same = |old: &&mut Finding| {
            old.kind == new.kind
                && old.port == new.port
                && old.subject.as_str() == new.subject.as_str()
                && old.site.as_str() == new.site.as_str()
        };
        if let Some(old) = self.list.iter_mut().find(same) {
            old.count = old.count.saturating_add(1);
        } else if self.list.len() < FINDINGS_MAX {
            self.list.push(new.clone());
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    pub fn get(&self, index: usize) -> Option<&Finding> {
        self.list.get(index)
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many of them decide the verdict.
    pub fn fatal(&self) -> u32 {
        self.list.iter().filter(|finding| finding.fatal != 0).count() as u32
    }

    /// Different findings for which there was no room.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    pub fn has(&self, kind: u32) -> bool {
        self.list.iter().any(|finding| finding.kind == kind)
    }
}

/// A finding to fill in.
pub fn blank(kind: u32, is_fatal: bool) -> Finding {
    Finding { kind, count: 1, fatal: u32::from(is_fatal), ..Finding::BLANK }
}

/// The name of a finding's kind for people.
pub fn kind_name(kind: u32) -> &'static str {
    match kind {
        finding::REFUSAL => "refusal",
        finding::SPIN => "spin",
        finding::REPLAY_MISMATCH => "replay mismatch",
        finding::REPLAY_EXHAUSTED => "replay exhausted",
        finding::REPLAY_LEFTOVER => "replay leftover",
        finding::RECORD_STOPPED => "recording stopped",
        finding::DEADLOCK => "deadlock",
        finding::EXTERNAL_CHILD => "external child",
        finding::TURN_LOST => "turn lost",
        _ => "finding",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn equal_findings_are_counted_and_the_list_is_bounded() {
        let mut findings = Findings::default();
        let mut one = blank(finding::REFUSAL, true);
        write!(one.subject, "db.example").expect("fits");
        findings.add(&one);
        findings.add(&one);
        assert_eq!((findings.len(), findings.get(0).map(|found| found.count)), (1, Some(2)));
        for port in 0..100 {
            one.port = port;
            findings.add(&one);
        }
        assert_eq!((findings.len(), findings.dropped()), (FINDINGS_MAX, 37));
    }
}
