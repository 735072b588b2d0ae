//! Rules for any text: what must not be said, and space.

use super::Finding;

/// Paths of somebody's machine. Split, so that this file passes its own rule.
const MACHINE_PATHS: [&str; 7] = [
    concat!("/wo", "rk/main"),
    concat!("/wo", "rk/shared"),
    concat!("/wo", "rk/brief"),
    concat!("/wo", "rk/."),
    concat!("/ro", "ot/"),
    concat!("/tmp/tar", "get-"),
    concat!("arti", "factory"),
];

/// Marks of unfinished work.
const OPEN_MARKERS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Words that have a better one here.
const WORDS: [(&str, &str); 4] = [
    (concat!("white", "list"), "allowlist"),
    (concat!("black", "list"), "denylist"),
    (concat!("sanity", " check"), "check"),
    (concat!("monkey", " patch"), "monkeypatch"),
];

/// The formatter holds code to 120; sentences in comments, which it leaves alone, get a little more.
const LINE_LEN_MAX: usize = 132;
const GENERATED: &str = concat!("Code generated", " by");

pub fn machine_paths(text: &str) -> Vec<Finding> {
    each_line(text, |line| {
        let found = MACHINE_PATHS.iter().find(|path| line.contains(**path))?;
        Some(format!("names {found:?}, which is a place of one machine: write a path from the root, or a placeholder"))
    })
}

pub fn open_markers(text: &str) -> Vec<Finding> {
    each_line(text, |line| {
        let found = OPEN_MARKERS.iter().find(|marker| has_word(line, marker))?;
        Some(format!("{found}: finish it, or write down as a known limit what is missing and why"))
    })
}

pub fn words(text: &str) -> Vec<Finding> {
    each_line(text, |line| {
        let line = line.to_ascii_lowercase();
        let (word, better) = WORDS.iter().find(|(word, _)| line.contains(word))?;
        Some(format!("{word:?}: write {better:?}"))
    })
}

pub fn space(text: &str) -> Vec<Finding> {
    let is_makefile = text.contains("\n.PHONY:");
    let mut findings = each_line(text, |line| {
        if line.ends_with([' ', '\t', '\r']) {
            return Some("space at the end of the line: drop it".to_owned());
        }
        let has_tab = line.contains('\t') && !is_makefile;
        has_tab.then(|| "a tab: write spaces, or \\t inside a string".to_owned())
    });
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        let message = "the file must end with exactly one line end".to_owned();
        findings.push(Finding { line: text.lines().count(), message });
    }
    findings
}

pub fn long_lines(text: &str) -> Vec<Finding> {
    each_line(text, |line| {
        let len = line.chars().count();
        let is_comment = line.trim_start().starts_with(['/', '#']);
        // Addresses and strings have no tidy way to be broken.
        let is_breakable = if is_comment { !line.contains("://") } else { !line.contains('"') };
        (len > LINE_LEN_MAX && is_breakable)
            .then(|| format!("{len} characters, more than {LINE_LEN_MAX}: break the line"))
    })
}

/// Whether the first line is the mark of a generator.
pub fn claims_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(GENERATED))
}

fn each_line(text: &str, check: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let lines = text.split_terminator('\n').enumerate();
    lines.filter_map(|(at, line)| check(line).map(|message| Finding { line: at + 1, message })).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn markers_count_as_whole_words() {
        let marker = OPEN_MARKERS[0];
        assert_eq!(lines(&open_markers(&format!("fine\n// {marker}: later\n{marker}S\n"))), [2]);
    }

    #[test]
    fn space_is_found_where_nobody_sees_it() {
        assert_eq!(lines(&space("a \nb\n\tc\nd")), [1, 3, 4]);
        assert!(space("all:\n\techo\n.PHONY: all\n").is_empty());
        assert_eq!(lines(&space("a\n\n")), [2]);
        assert!(space("").is_empty());
    }

    #[test]
    fn long_lines_may_hold_strings_and_addresses() {
        let long = "x".repeat(LINE_LEN_MAX + 1);
        assert_eq!(lines(&long_lines(&format!("{long}\ndoc = \"{long}\"\n// https://{long}\n"))), [1]);
    }
}
