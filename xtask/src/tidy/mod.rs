//! Checks what formatters and linters do not: [`RULES`] is the list, each an independent entry.
//!
//! A rule looks at one file at a time and tells lines. To add one: a function from text to findings, a row here.

mod function;
mod manifest;
mod rust;
mod text;
mod vectors;

use crate::checkout::{Checkout, Outcome};
use crate::gen::OUTPUTS;

/// What a rule found in a file.
pub struct Finding {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

struct Rule {
    applies: fn(&str) -> bool,
    check: fn(&str) -> Vec<Finding>,
}

const RULES: [Rule; 10] = [
    Rule { applies: is_text, check: text::machine_paths },
    Rule { applies: is_text, check: text::open_markers },
    Rule { applies: is_text, check: text::words },
    // gofmt indents with tabs, and is asked itself.
    Rule { applies: |path| is_text(path) && !has_ending(path, &["go"]), check: text::space },
    Rule { applies: is_code_or_table, check: text::long_lines },
    Rule { applies: is_rust, check: function::long_functions },
    Rule { applies: |path| is_rust(path) && !may_be_unsafe(path), check: rust::unsafe_blocks },
    Rule { applies: |path| is_rust(path) || is_shipped_python(path), check: rust::headers },
    Rule { applies: |path| path.ends_with("Cargo.toml"), check: manifest::dependencies },
    Rule { applies: is_vectors, check: vectors::form },
];

pub fn run(checkout: &Checkout) -> Outcome {
    let mut problems = Vec::new();
    for path in checkout.files()?.iter().filter(|path| is_text(path)) {
        let text = checkout.read(path)?;
        let findings = RULES.iter().filter(|rule| (rule.applies)(path)).flat_map(|rule| (rule.check)(&text));
        problems.extend(findings.map(|finding| format!("{path}:{}: {}", finding.line, finding.message)));
        if text::claims_generated(&text) && !OUTPUTS.iter().any(|output| output.path == *path) {
            problems.push(format!(
                "{path}:1: says that it is generated, but no generator owns it: drop the line or the file"
            ));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Files that people write. Lock files, and what tests compare with, are made by tools.
fn is_text(path: &str) -> bool {
    const ENDINGS: [&str; 17] = [
        "rs", "py", "pyi", "go", "ts", "mjs", "toml", "md", "json", "c", "h", "sh", "yml", "yaml", "ini", "cfg", "txt",
    ];
    let is_made = ["/data/", "/snapshots/", "/journals/"].iter().any(|folder| path.contains(folder));
    let is_plain = matches!(path, "Makefile" | "VERSION" | ".gitignore" | ".ci/run");
    is_plain || has_ending(path, &ENDINGS) && !is_made
}

fn is_vectors(path: &str) -> bool {
    path.starts_with("spec/vectors/") && path.ends_with(".json") && !path.ends_with("/schema.json")
}

fn is_code_or_table(path: &str) -> bool {
    has_ending(path, &["rs", "toml"])
}

fn is_rust(path: &str) -> bool {
    has_ending(path, &["rs"])
}

fn is_shipped_python(path: &str) -> bool {
    path.starts_with("python/") && has_ending(path, &["py"])
}

/// The crates at the edge: the machine, the hooks, and the borders to CPython and to Rust.
fn may_be_unsafe(path: &str) -> bool {
    let places = ["crates/sys/", "crates/hook/", "crates/py/", "crates/rust/src/engine.rs"];
    places.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_names() {
        assert!(is_text("crates/model/src/lib.rs") && is_text("Makefile") && !is_text("Cargo.lock"));
        assert!(!is_text("a.journal") && !is_text("folder.rs/file"));
        assert!(!is_text("crates/journal/tests/data/head.json"));
        assert!(may_be_unsafe("crates/hook/src/lib.rs") && !may_be_unsafe("crates/model/src/sys.rs"));
    }
}
