//! The options of a sandbox: `spec/options.toml` to the table that the Python package validates with, and to a page. The Rust
//! crate's tables are made by [`super::rust`].

use super::{cell, check_sentence, mark, python, rust, table};
use crate::checkout::{Checkout, Outcome};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;

pub const SOURCE: &str = "spec/options.toml";
/// Longest `accepts` text: with its key it still fits on one line of the generated file.
const ACCEPTS_LEN_MAX: usize = 95;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub sandbox: Vec<SandboxOption>,
    pytest: Vec<PytestOption>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxOption {
    pub name: String,
    r#type: String,
    pub default: String,
    #[serde(default)]
    pub choices: Vec<String>,
    accepts: String,
    pub doc: String,
    flag: Option<String>,
    ini: Option<String>,
    #[serde(default)]
    run_wide: bool,
    pub rust: Option<RustTwin>,
}

/// What the Rust crate makes of an option.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RustTwin {
    pub kind: String,
    #[serde(default)]
    pub accepts: String,
    #[serde(default)]
    pub choices: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PytestOption {
    flag: String,
    ini: Option<String>,
    default: String,
    doc: String,
}

impl SandboxOption {
    fn default_literal(&self) -> String {
        python::value(&self.default)
    }

    /// The closed set of values, if it is one.
    fn choice_literals(&self) -> Option<Vec<String>> {
        let none = (self.default == "None").then(|| self.default_literal());
        let choices = self.choices.iter().map(|choice| python::string(choice));
        (!self.choices.is_empty()).then(|| none.into_iter().chain(choices).collect())
    }
}

pub fn read(checkout: &Checkout) -> Outcome<Table> {
    let table: Table = table(checkout, SOURCE)?;
    let mut seen = BTreeSet::new();
    for option in &table.sandbox {
        let name = &option.name;
        check_sentence(SOURCE, name, &option.doc)?;
        let twins = [Some(name), option.flag.as_ref(), option.ini.as_ref()];
        if let Some(twice) = twins.into_iter().flatten().find(|name| !seen.insert((*name).clone())) {
            return Err(format!("{SOURCE}: {twice:?} is there twice"));
        }
        if option.accepts.len() > ACCEPTS_LEN_MAX || option.accepts.is_empty() {
            return Err(format!("{SOURCE}: accepts of {name:?} must have 1 to {ACCEPTS_LEN_MAX} characters"));
        }
        let is_constant = python::is_literal(&option.default);
        if !option.choices.is_empty() && !is_constant && !option.choices.contains(&option.default) {
            return Err(format!("{SOURCE}: default of {name:?} is none of its choices"));
        }
    }
    for option in &table.pytest {
        check_sentence(SOURCE, &option.flag, &option.doc)?;
        if !seen.insert(option.flag.clone()) {
            return Err(format!("{SOURCE}: {:?} is there twice", option.flag));
        }
    }
    Ok(table)
}

pub fn python(checkout: &Checkout) -> Outcome<String> {
    let options = read(checkout)?.sandbox;
    let mut out = format!("# {}\n", mark(SOURCE));
    out.push_str("\"\"\"The options of a sandbox: defaults, closed sets of values, and what error texts say is ");
    out.push_str("accepted.\"\"\"\n\n");
    out.push_str("from __future__ import annotations\n\nfrom typing import Any, Final\n");
    let defaults = options.iter().map(|option| (&option.name, option.default_literal()));
    dictionary(&mut out, "DEFAULTS", "dict[str, Any]", "In the order of the signature.", defaults);
    let choices = options.iter().filter_map(|option| Some((&option.name, python::tuple(&option.choice_literals()?))));
    let doc = "Values that an option accepts, where they are a closed set.";
    dictionary(&mut out, "CHOICES", "dict[str, tuple[str | None, ...]]", doc, choices);
    let accepted = options.iter().map(|option| (&option.name, python::string(&option.accepts)));
    dictionary(&mut out, "ACCEPTED", "dict[str, str]", "How an error text ends: \"accepted is …\".", accepted);
    names(
        &mut out,
        "SWITCHES",
        "Options that are True or False.",
        options.iter().filter(|option| option.r#type == "bool"),
    );
    let doc = "Options that belong to a whole run, so that a marker may not carry them.";
    names(&mut out, "RUN_WIDE", doc, options.iter().filter(|option| option.run_wide));
    Ok(out)
}

fn dictionary<'row>(
    out: &mut String,
    name: &str,
    annotation: &str,
    doc: &str,
    rows: impl Iterator<Item = (&'row String, String)>,
) {
    write!(out, "\n{name}: Final[{annotation}] = {{\n").expect("a String takes all");
    for (key, value) in rows {
        writeln!(out, "    {}: {value},", python::string(key)).expect("a String takes all");
    }
    write!(out, "}}\n\"\"\"{doc}\"\"\"\n").expect("a String takes all");
}

/// A tuple of names, one a line, as the formatter keeps it behind a trailing comma.
fn names<'row>(out: &mut String, name: &str, doc: &str, rows: impl Iterator<Item = &'row SandboxOption>) {
    write!(out, "\n{name}: Final[tuple[str, ...]] = (\n").expect("a String takes all");
    for option in rows {
        writeln!(out, "    {},", python::string(&option.name)).expect("a String takes all");
    }
    write!(out, ")\n\"\"\"{doc}\"\"\"\n").expect("a String takes all");
}

pub fn docs(checkout: &Checkout) -> Outcome<String> {
    let table = read(checkout)?;
    let mut out = format!("<!-- {} -->\n\n# Options\n\n", mark(SOURCE));
    out.push_str("## `hermetic.sandbox(...)`\n\nOnly `seed` may be given by position. A marker ");
    out.push_str("`@pytest.mark.hermetic(...)` takes the same options, except those of a whole run.\n\n");
    out.push_str("| option | default | accepts | what it does | pytest |\n|---|---|---|---|---|\n");
    for option in &table.sandbox {
        let twins = [&option.flag, &option.ini].into_iter().flatten().map(|twin| format!("`{twin}`"));
        let twins: Vec<String> = twins.collect();
        let (name, default) = (&option.name, option.default_literal());
        let (accepts, doc) = (cell(&option.accepts), cell(&option.doc));
        let kind = cell(&option.r#type);
        writeln!(out, "| `{name}`<br>{kind} | `{default}` | {accepts} | {doc} | {} |", twins.join("<br>"))
            .expect("a String takes all");
    }
    out.push_str("\n## pytest\n\nOptions of the plugin that are no option of a sandbox. Flags win over ini keys.\n\n");
    out.push_str("| flag | ini key | default | what it does |\n|---|---|---|---|\n");
    for option in &table.pytest {
        let ini = option.ini.as_ref().map_or_else(|| "—".to_owned(), |ini| format!("`{ini}`"));
        writeln!(out, "| `{}` | {ini} | {} | {} |", option.flag, option.default, cell(&option.doc))
            .expect("a String takes all");
    }
    out.push_str(&rust::docs(&table));
    Ok(out)
}
