//! The command that runs one failing test again, to be pasted into a shell. Pure.

use crate::environment::{REPLAY, SEED};
use std::path::Path;

/// What has to be said to get one test again.
pub struct Again<'a> {
    /// As the harness names it: without the crate.
    pub test: &'a str,
    pub package: Option<&'a str>,
    /// The base of seeds, where the test's own follows from it.
    pub base: Option<u64>,
    pub replay: Option<&'a Path>,
    pub is_nextest: bool,
}

impl Again<'_> {
    pub fn command(&self) -> String {
        let mut words = Vec::new();
        if let Some(path) = self.replay {
            words.push(format!("{REPLAY}={}", quote(&path.to_string_lossy())));
        } else if let Some(base) = self.base {
            words.push(format!("{SEED}={base}"));
        }
        words.push(if self.is_nextest { "cargo nextest run" } else { "cargo test" }.to_owned());
        words.extend(self.package.map(|package| format!("-p {package}")));
        words.push(if self.is_nextest {
            format!("-E {}", quote(&format!("test(={})", self.test)))
        } else {
            format!("-- --exact {}", quote(self.test))
        });
        words.join(" ")
    }
}

/// For a POSIX shell.
fn quote(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:@%+,".contains(sign);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Again<'static> =
        Again { test: "tests::it_works", package: Some("shop"), base: Some(7), replay: None, is_nextest: false };

    #[test]
    fn a_test_is_named_for_its_runner() {
        assert_eq!(PLAIN.command(), "HERMETIC_SEED=7 cargo test -p shop -- --exact tests::it_works");
        let nextest = Again { is_nextest: true, base: None, ..PLAIN };
        assert_eq!(nextest.command(), "cargo nextest run -p shop -E 'test(=tests::it_works)'");
    }

    #[test]
    fn a_journal_stands_in_for_the_seed_and_is_quoted() {
        let replay = Again { replay: Some(Path::new("/tmp/it's/a.journal")), package: None, ..PLAIN };
        assert_eq!(replay.command(), r"HERMETIC_REPLAY='/tmp/it'\''s/a.journal' cargo test -- --exact tests::it_works");
    }
}
