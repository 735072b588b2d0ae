//! The Rust crate's share of `spec/options.toml`: the table that its macro checks with, and the types of options with a closed
//! set of values.

use super::front_ends::pascal_case;
use super::options::{read, RustTwin, SandboxOption, Table, SOURCE};
use super::{cell, mark};
use crate::checkout::{Checkout, Outcome};
use std::fmt::Write;

/// Kinds, and the type that a method of the builder takes.
const KINDS: [(&str, &str); 7] = [
    ("seed", "integer"),
    ("instant", "text, integer, float"),
    ("seconds", "float"),
    ("count", "integer"),
    ("switch", "bool"),
    ("choice", "text"),
    ("network", "text, list of texts"),
];

/// An option that the Rust crate has.
struct Row<'a> {
    option: &'a SandboxOption,
    twin: &'a RustTwin,
}

impl Row<'_> {
    fn choices(&self) -> &[String] {
        if self.twin.choices.is_empty() {
            &self.option.choices
        } else {
            &self.twin.choices
        }
    }

    fn accepts(&self) -> String {
        let quoted: Vec<String> = self.choices().iter().map(|choice| format!("{choice:?}")).collect();
        match (self.twin.kind.as_str(), quoted.split_last()) {
            ("choice", Some((last, rest))) => format!("{} or {last}", rest.join(", ")),
            ("switch", _) => "true or false".to_owned(),
            _ => self.twin.accepts.clone(),
        }
    }

    /// The value that stands where nobody chose one: for a choice the first that is not "leave it to others".
    fn default(&self) -> &str {
        match self.option.default.as_str() {
            "None" if self.twin.kind == "choice" => &self.choices()[0],
            default => default,
        }
    }
}

fn rows(table: &Table) -> Outcome<Vec<Row<'_>>> {
    let rows = table.sandbox.iter().filter_map(|option| Some(Row { option, twin: option.rust.as_ref()? }));
    let rows: Vec<Row<'_>> = rows.collect();
    for row in &rows {
        let (name, kind) = (&row.option.name, &row.twin.kind);
        if !KINDS.iter().any(|(known, _)| known == kind) {
            return Err(format!("{SOURCE}: rust kind {kind:?} of {name:?} is unknown"));
        }
        if row.accepts().is_empty() || kind == "choice" && !row.choices().iter().any(|choice| choice == row.default()) {
            return Err(format!(
                "{SOURCE}: rust twin of {name:?} needs `accepts`, or choices with the default in them"
            ));
        }
    }
    Ok(rows)
}

/// `crates/rust-macros/src/table.rs`.
pub fn table(checkout: &Checkout) -> Outcome<String> {
    let table = read(checkout)?;
    let mut out = format!("// {}\n//! The options that `#[hermetic::test]` takes.\n\n", mark(SOURCE));
    out.push_str("use crate::option::{Kind, Row};\n\n/// In the order of the specification.\n");
    let rows = rows(&table)?;
    writeln!(out, "pub const OPTIONS: [Row; {}] = [", rows.len()).expect("a String takes all");
    for row in rows {
        let (name, kind, accepts) = (&row.option.name, pascal_case(&row.twin.kind), row.accepts());
        let kind = match row.twin.kind.as_str() {
            "choice" => {
                let choices: Vec<String> = row.choices().iter().map(|choice| format!("{choice:?}")).collect();
                format!("Choice(&[{}])", choices.join(", "))
            }
            _ => kind,
        };
        let line = format!("    Row {{ name: {name:?}, kind: Kind::{kind}, accepts: {accepts:?} }},");
        if line.len() <= 120 {
            writeln!(out, "{line}").expect("a String takes all");
        } else {
            write!(out, "    Row {{\n        name: {name:?},\n        kind: Kind::{kind},\n        accepts: {accepts:?},\n    }},\n")
                .expect("a String takes all");
        }
    }
    out.push_str("];\n");
    Ok(out)
}

/// `crates/rust/src/option.rs`.
pub fn options(checkout: &Checkout) -> Outcome<String> {
    let table = read(checkout)?;
    let mut out = format!("// {}\n//! The values of options with a closed set of them, and defaults.\n", mark(SOURCE));
    for row in rows(&table)? {
        let (name, default) = (&row.option.name, row.default());
        match row.twin.kind.as_str() {
            "choice" => write!(out, "\n{}", choice(&row)).expect("a String takes all"),
            "instant" => constant(&mut out, name, "&str", &format!("{default:?}")),
            "seconds" => constant(&mut out, name, "f64", default),
            "count" => constant(&mut out, name, "u64", default),
            "switch" => constant(&mut out, name, "bool", &default.to_lowercase()),
            _ => {}
        }
    }
    Ok(out)
}

fn constant(out: &mut String, name: &str, kind: &str, value: &str) {
    let upper = name.to_uppercase();
    write!(out, "\n/// Where nobody chose `{name}`.\npub const {upper}: {kind} = {value};\n")
        .expect("a String takes all");
}

fn choice(row: &Row<'_>) -> String {
    let name = pascal_case(&row.option.name);
    let mut out = comment(&format!("`{}`: {}", row.option.name, row.option.doc));
    write!(out, "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub enum {name} {{\n")
        .expect("a String takes all");
    for choice in row.choices() {
        let mark = if choice == row.default() { "    #[default]\n" } else { "" };
        writeln!(out, "{mark}    {},", pascal_case(choice)).expect("a String takes all");
    }
    write!(out, "}}\n\nimpl {name} {{\n    /// As journals and other languages spell it.\n")
        .expect("a String takes all");
    out.push_str("    pub const fn name(self) -> &'static str {\n        match self {\n");
    for choice in row.choices() {
        writeln!(out, "            {name}::{} => {choice:?},", pascal_case(choice)).expect("a String takes all");
    }
    out.push_str("        }\n    }\n\n    /// The value of that name.\n");
    out.push_str("    pub fn from_name(name: &str) -> Option<Self> {\n        match name {\n");
    for choice in row.choices() {
        writeln!(out, "            {choice:?} => Some({name}::{}),", pascal_case(choice)).expect("a String takes all");
    }
    out.push_str("            _ => None,\n        }\n    }\n}\n");
    out
}

/// A documentation comment in lines of at most 120 characters.
fn comment(text: &str) -> String {
    let mut out = String::from("///");
    let mut len = out.len();
    for word in text.split(' ') {
        if len + 1 + word.len() > 120 {
            out.push_str("\n///");
            len = 3;
        }
        out.push(' ');
        out.push_str(word);
        len += 1 + word.len();
    }
    out.push('\n');
    out
}

/// The Rust part of `docs/options.md`.
pub fn docs(table: &Table) -> String {
    let mut out = String::from(
        "\n## Rust\n\n`#[hermetic::test(...)]` takes these by name; the builder of `hermetic::Sandbox` has",
    );
    out.push_str(" a method for each. What they do stands above.\n\n");
    out.push_str("| option | default | accepts |\n|---|---|---|\n");
    for option in &table.sandbox {
        let Some(twin) = &option.rust else { continue };
        let row = Row { option, twin };
        let kind = KINDS.iter().find(|(kind, _)| *kind == twin.kind).map_or("", |(_, words)| words);
        let default = match (row.default(), twin.kind.as_str()) {
            ("None", _) => "from the test's name".to_owned(),
            (default, "switch" | "count" | "seconds") => format!("`{}`", default.to_lowercase()),
            (default, _) => format!("`{default:?}`"),
        };
        let (name, accepts) = (&option.name, cell(&row.accepts()));
        writeln!(out, "| `{name}`<br>{kind} | {default} | {accepts} |").expect("a String takes all");
    }
    out
}
