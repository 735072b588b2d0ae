//! Rules for source files: where `unsafe` may stand, and that each file says what it is for.

use super::function::without_text;
use super::Finding;

pub fn unsafe_blocks(text: &str) -> Vec<Finding> {
    let message = "an unsafe block: only the crates sys, hook and py have them; move the code there";
    let code = without_text(text);
    let lines = code.lines().enumerate().filter(|(_, line)| line.contains("unsafe {"));
    lines.map(|(at, _)| Finding { line: at + 1, message: message.to_owned() }).collect()
}

/// The first thing in a file is its documentation, behind at most a shebang, comments and (in tests) nothing else.
pub fn headers(text: &str) -> Vec<Finding> {
    let is_comment = |line: &&str| line.starts_with('#') && !line.starts_with("#[") || line.trim().is_empty();
    let first = text.lines().find(|line| !is_comment(line)).unwrap_or("\"\"\"");
    let is_header = ["//!", "\"\"\"", "r\"\"\""].iter().any(|start| first.starts_with(start));
    if is_header || first.starts_with("// Code generated") {
        return Vec::new();
    }
    let message = "no header: begin the file with what it is for and what it leaves to others";
    vec![Finding { line: 1, message: message.to_owned() }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_seen_in_both_languages() {
        assert!(headers("//! Is for this.\n").is_empty());
        assert!(headers("#!/usr/bin/env python3\n\n\"\"\"Is for this.\"\"\"\n").is_empty());
        assert!(headers("").is_empty());
        assert_eq!(headers("#![no_std]\n").len(), 0);
        assert_eq!(headers("use std::fs;\n//! Too late.\n").len(), 1);
        assert_eq!(headers("import os\n").len(), 1);
    }

    #[test]
    fn unsafe_in_words_is_no_block() {
        let opening = concat!("unsafe", " {");
        assert_eq!(unsafe_blocks(&format!("// {opening}\nlet x = \"{opening}\";\n")).len(), 0);
        assert_eq!(unsafe_blocks(&format!("let x = {opening} f() }};\n")).len(), 1);
    }
}
