//! The libc names that hooks answer for: `spec/hooks.toml` to the page of them. The code is held to the same list by a test of
//! its own crate.

use super::{cell, mark, table};
use crate::checkout::{Checkout, Outcome};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const SOURCE: &str = "spec/hooks.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    hook: Vec<Hook>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    name: String,
    header: String,
    does: String,
}

fn read(checkout: &Checkout) -> Outcome<Vec<Hook>> {
    let hooks = table::<Table>(checkout, SOURCE)?.hook;
    let mut seen = BTreeSet::new();
    for hook in &hooks {
        if !seen.insert(&hook.name) {
            return Err(format!("{SOURCE}: {:?} is there twice", hook.name));
        }
        if hook.header.is_empty() || hook.does.is_empty() || hook.does.contains('\n') {
            return Err(format!("{SOURCE}: {:?} needs a header, and one line about what it does", hook.name));
        }
    }
    Ok(hooks)
}

pub fn docs(checkout: &Checkout) -> Outcome<String> {
    let hooks = read(checkout)?;
    let mut by_header: BTreeMap<&str, Vec<&Hook>> = BTreeMap::new();
    for hook in &hooks {
        by_header.entry(&hook.header).or_default().push(hook);
    }
    let mut out = format!("<!-- {} -->\n\n# What is answered\n\n", mark(SOURCE));
    let count = hooks.len();
    write!(
        out,
        "Inside a sandbox, calls to these {count} names of libc are answered, whoever makes them: the interpreter, "
    )
    .expect("a String takes all");
    out.push_str(
        "an extension\nmodule, a C library. What reaches the kernel without them (raw system calls, statically linked ",
    );
    out.push_str("code) stays real.\n");
    for (header, hooks) in by_header {
        write!(out, "\n## `{header}`\n\n| name | in a sandbox |\n|---|---|\n").expect("a String takes all");
        for hook in hooks {
            writeln!(out, "| `{}` | {} |", hook.name, cell(&hook.does)).expect("a String takes all");
        }
    }
    Ok(out)
}
