//! What the engine noticed inside a sandbox.

use hermetic_abi::finding;
use std::fmt;

/// One thing that was noticed. Equal ones are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    pub kind: Kind,
    /// How often it happened.
    pub count: u32,
    /// It decides the verdict.
    pub is_fatal: bool,
    /// For refusals: host, address or path; for children: the program.
    pub subject: String,
    /// For refusals of something with a port.
    pub port: Option<u16>,
    /// One sentence.
    pub message: String,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A connection, send or look-up was refused.
    Refusal,
    /// A thread read a clock that does not move more often than the limit.
    Spin,
    /// Replay was asked for something else than the journal holds.
    ReplayMismatch,
    /// Replay was asked for more than the journal holds.
    ReplayExhausted,
    /// Replay ended with recorded events unused.
    ReplayLeftover,
    /// Recording stopped early; the journal is truthful up to there.
    RecordStopped,
    /// All threads waited for each other.
    Deadlock,
    /// A child took no part in the sandbox, and time followed the real one while it ran.
    ExternalChild,
    /// Something that a later engine tells.
    Other,
}

impl From<&hermetic_abi::Finding> for Finding {
    fn from(raw: &hermetic_abi::Finding) -> Finding {
        Finding {
            kind: kind(raw.kind),
            count: raw.count,
            is_fatal: raw.fatal != 0,
            subject: raw.subject.as_str().to_owned(),
            port: u16::try_from(raw.port).ok(),
            message: raw.message.as_str().to_owned(),
        }
    }
}

fn kind(number: u32) -> Kind {
    match number {
        finding::REFUSAL => Kind::Refusal,
        finding::SPIN => Kind::Spin,
        finding::REPLAY_MISMATCH => Kind::ReplayMismatch,
        finding::REPLAY_EXHAUSTED => Kind::ReplayExhausted,
        finding::REPLAY_LEFTOVER => Kind::ReplayLeftover,
        finding::RECORD_STOPPED => Kind::RecordStopped,
        finding::DEADLOCK => Kind::Deadlock,
        finding::EXTERNAL_CHILD => Kind::ExternalChild,
        _ => Kind::Other,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if self.count > 1 {
            write!(out, " ({} times)", self.count)?;
        }
        Ok(())
    }
}
