//! The environment floor: `spec/{credentials,preserve,git-lockdown,home,settings}.toml` to Rust's and Python's tables and a page.

use super::{cell, check_sentence, mark, python, table};
use crate::checkout::{Checkout, Outcome};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;

const CREDENTIALS: &str = "spec/credentials.toml";
const PRESERVE: &str = "spec/preserve.toml";
const GIT: &str = "spec/git-lockdown.toml";
const HOME: &str = "spec/home.toml";
const SETTINGS: &str = "spec/settings.toml";
const SOURCES: &str = "spec/{credentials,preserve,git-lockdown,home,settings}.toml";
const KINDS: [&str; 5] = ["choice", "list", "switch", "count", "text"];
/// The prefix of a setting in pytest's configuration.
const PREFIX: &str = "stricttest_";

/// A variable, or a pattern of variables, and why it is there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    pub exact: Vec<Row>,
    pub pattern: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preserve {
    pub name: String,
    pub variable: String,
    pub default: String,
    pub doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreserveTable {
    preserve: Vec<Preserve>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub user_name: String,
    pub user_email: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigEntry {
    pub section: String,
    pub key: String,
    pub value: String,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub name: String,
    pub value: String,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitLists {
    pub config: Vec<ConfigEntry>,
    pub pin: Vec<Pin>,
    pub remove: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Git {
    pub identity: Identity,
    pub lists: GitLists,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Folder {
    name: String,
    folder: String,
    #[serde(default)]
    private: bool,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Home {
    folder: Vec<Folder>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    kind: String,
    #[serde(default)]
    choices: Vec<String>,
    #[serde(default)]
    required: bool,
    safest: Option<String>,
    default: Option<String>,
    doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingTable {
    setting: Vec<Setting>,
}

/// Sorted, named once, with a reason.
fn check_rows<'row>(path: &str, rows: impl Iterator<Item = (&'row str, &'row str)>) -> Outcome {
    let mut last = "";
    for (name, reason) in rows {
        if name <= last {
            return Err(format!("{path}: {name:?} comes after {last:?}: rows are sorted and named once"));
        }
        if reason.is_empty() {
            return Err(format!("{path}: {name:?} has no reason"));
        }
        last = name;
    }
    Ok(())
}

fn pairs(rows: &[Row]) -> impl Iterator<Item = (&str, &str)> {
    rows.iter().map(|row| (row.name.as_str(), row.reason.as_str()))
}

pub fn credentials(checkout: &Checkout) -> Outcome<Credentials> {
    let read: Credentials = table(checkout, CREDENTIALS)?;
    check_rows(CREDENTIALS, pairs(&read.exact))?;
    check_rows(CREDENTIALS, pairs(&read.pattern))?;
    let preserved = preserve(checkout)?;
    let upper = |row: &&Row| row.name.to_uppercase() != row.name || row.name.contains('*');
    if let Some(odd) = read.exact.iter().find(upper) {
        return Err(format!("{CREDENTIALS}: exact name {:?} must be upper case and no pattern", odd.name));
    }
    let is_kept = |row: &&Row| preserved.iter().any(|kept| kept.variable.eq_ignore_ascii_case(&row.name));
    match read.exact.iter().find(is_kept) {
        Some(both) => Err(format!("{CREDENTIALS}: {:?} is also in {PRESERVE}", both.name)),
        None => Ok(read),
    }
}

pub fn preserve(checkout: &Checkout) -> Outcome<Vec<Preserve>> {
    let rows = table::<PreserveTable>(checkout, PRESERVE)?.preserve;
    let mut seen = BTreeSet::new();
    for row in &rows {
        check_sentence(PRESERVE, &row.name, &row.doc)?;
        if !seen.insert(&row.name) || !seen.insert(&row.variable) {
            return Err(format!("{PRESERVE}: {:?} or its variable is there twice", row.name));
        }
    }
    Ok(rows)
}

pub fn git(checkout: &Checkout) -> Outcome<Git> {
    let read: Git = table(checkout, GIT)?;
    check_rows(GIT, read.lists.pin.iter().map(|pin| (pin.name.as_str(), pin.reason.as_str())))?;
    check_rows(GIT, pairs(&read.lists.remove))?;
    if read.lists.config.iter().any(|entry| entry.reason.is_empty()) {
        return Err(format!("{GIT}: an entry of the configuration has no reason"));
    }
    Ok(read)
}

fn home(checkout: &Checkout) -> Outcome<Vec<Folder>> {
    let rows = table::<Home>(checkout, HOME)?.folder;
    check_rows(HOME, rows.iter().map(|row| (row.name.as_str(), row.reason.as_str())))?;
    Ok(rows)
}

fn settings(checkout: &Checkout) -> Outcome<Vec<Setting>> {
    let rows = table::<SettingTable>(checkout, SETTINGS)?.setting;
    let mut seen = BTreeSet::new();
    for row in &rows {
        check_sentence(SETTINGS, &row.name, &row.doc)?;
        let has_one = row.required == row.safest.is_some() && row.required != row.default.is_some();
        let is_known = KINDS.contains(&row.kind.as_str()) && (row.kind == "choice") != row.choices.is_empty();
        if !seen.insert(&row.name) || !has_one || !is_known {
            return Err(format!(
                "{SETTINGS}: {:?} is there twice, or kind, choices, safest and default disagree",
                row.name
            ));
        }
    }
    Ok(rows)
}

/// The default of a setting that has one.
pub fn default_of(checkout: &Checkout, name: &str) -> Outcome<String> {
    let row = settings(checkout)?.into_iter().find(|row| row.name == name);
    row.and_then(|row| row.default).ok_or_else(|| format!("{SETTINGS}: {name:?} must be there, with a default"))
}

/// A Rust string literal.
fn literal(text: &str) -> String {
    format!("{text:?}")
}

fn rust_rows(out: &mut String, name: &str, doc: &str, rows: &[Row]) {
    let rows =
        rows.iter().map(|row| format!("Row {{ name: {}, reason: {} }}", literal(&row.name), literal(&row.reason)));
    rust_list(out, name, doc, "Row", rows);
}

fn rust_list(out: &mut String, name: &str, doc: &str, kind: &str, rows: impl Iterator<Item = String>) {
    write!(out, "\n/// {doc}\n#[rustfmt::skip]\npub const {name}: &[{kind}] = &[\n").expect("a String takes all");
    for row in rows {
        writeln!(out, "    {row},").expect("a String takes all");
    }
    out.push_str("];\n");
}

const RUST_TYPES: &str = r#"
/// A variable, or a pattern of variables, and why it is there.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub reason: &'static str,
}

/// A toolchain cache that may stay where it is.
#[derive(Clone, Copy, Debug)]
pub struct Preserve {
    pub name: &'static str,
    pub variable: &'static str,
    /// Where it is by default; holds `{home}` or `{gopath}`.
    pub default: &'static str,
}

/// An entry of git's throwaway configuration.
#[derive(Clone, Copy, Debug)]
pub struct ConfigEntry {
    pub section: &'static str,
    pub key: &'static str,
    /// May hold `{user_name}` or `{user_email}`.
    pub value: &'static str,
}

/// A variable that is set.
#[derive(Clone, Copy, Debug)]
pub struct Pin {
    pub name: &'static str,
    /// May hold `{user_name}`, `{user_email}` or `{gitconfig}`.
    pub value: &'static str,
    pub reason: &'static str,
}

/// A variable that moves into the throwaway directory.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    pub name: &'static str,
    pub folder: &'static str,
    /// Readable by its owner alone.
    pub is_private: bool,
}

/// How a setting is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Choice(&'static [&'static str]),
    List,
    Switch,
    Count,
    Text,
}

/// A setting, without its prefix.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    /// None: the setting is required.
    pub default: Option<&'static str>,
    /// What the block for pasting holds.
    pub safest: &'static str,
}
"#;

fn rust_kind(row: &Setting) -> String {
    match row.kind.as_str() {
        "choice" => {
            let choices: Vec<String> = row.choices.iter().map(|choice| literal(choice)).collect();
            format!("Kind::Choice(&[{}])", choices.join(", "))
        }
        "list" => "Kind::List".to_owned(),
        "switch" => "Kind::Switch".to_owned(),
        "count" => "Kind::Count".to_owned(),
        _ => "Kind::Text".to_owned(),
    }
}

pub fn rust(checkout: &Checkout) -> Outcome<String> {
    let (credentials, git) = (credentials(checkout)?, git(checkout)?);
    let mut out = format!("// {}\n", mark(SOURCES));
    out.push_str("//! The tables of the floor, as the specification has them.\n");
    out.push_str(RUST_TYPES);
    rust_rows(&mut out, "CREDENTIALS", "Taken away always; upper case, compared without case.", &credentials.exact);
    rust_rows(&mut out, "CREDENTIAL_PATTERNS", "Taken away unless kept by name.", &credentials.pattern);
    rust_rows(&mut out, "GIT_REMOVED", "What git would let win over directory and configuration.", &git.lists.remove);
    let pins = git.lists.pin.iter().map(|pin| {
        let (name, value, reason) = (literal(&pin.name), literal(&pin.value), literal(&pin.reason));
        format!("Pin {{ name: {name}, value: {value}, reason: {reason} }}")
    });
    rust_list(&mut out, "GIT_PINNED", "Variables of git that are set.", "Pin", pins);
    let entries = git.lists.config.iter().map(|entry| {
        let (section, key, value) = (literal(&entry.section), literal(&entry.key), literal(&entry.value));
        format!("ConfigEntry {{ section: {section}, key: {key}, value: {value} }}")
    });
    rust_list(&mut out, "GIT_CONFIG", "The throwaway configuration, in order.", "ConfigEntry", entries);
    let kept = preserve(checkout)?;
    let kept = kept.iter().map(|row| {
        let (name, variable, default) = (literal(&row.name), literal(&row.variable), literal(&row.default));
        format!("Preserve {{ name: {name}, variable: {variable}, default: {default} }}")
    });
    rust_list(&mut out, "PRESERVED", "The closed set of caches.", "Preserve", kept);
    let folders = home(checkout)?;
    let folders = folders.iter().map(|row| {
        let (name, folder) = (literal(&row.name), literal(&row.folder));
        format!("Folder {{ name: {name}, folder: {folder}, is_private: {} }}", row.private)
    });
    rust_list(&mut out, "FOLDERS", "Variables that move, and where to.", "Folder", folders);
    let rows = settings(checkout)?;
    let rows = rows.iter().map(|row| {
        let default = row.default.as_ref().map_or("None".to_owned(), |text| format!("Some({})", literal(text)));
        let (name, kind, safest) = (literal(&row.name), rust_kind(row), literal(row.safest.as_deref().unwrap_or("")));
        format!("Setting {{ name: {name}, kind: {kind}, default: {default}, safest: {safest} }}")
    });
    rust_list(&mut out, "SETTINGS", "Every setting, in the order of the documentation.", "Setting", rows);
    Ok(out)
}

pub fn python(checkout: &Checkout) -> Outcome<String> {
    let rows = settings(checkout)?;
    let mut out = format!("# {}\n# ruff: noqa: E501\n", mark(SOURCES));
    out.push_str("\"\"\"Names of settings and caches, as the specification has them.\"\"\"\n\n");
    out.push_str("from __future__ import annotations\n\nfrom typing import Final\n");
    let key = |row: &&Setting| python::string(&format!("{PREFIX}{}", row.name));
    let names = |out: &mut String, name: &str, doc: &str, keys: &mut dyn Iterator<Item = String>| {
        write!(out, "\n{name}: Final[tuple[str, ...]] = (\n").expect("a String takes all");
        for key in keys {
            writeln!(out, "    {key},").expect("a String takes all");
        }
        write!(out, ")\n\"\"\"{doc}\"\"\"\n").expect("a String takes all");
    };
    let required = &mut rows.iter().filter(|row| row.required);
    names(&mut out, "REQUIRED_KEYS", "Settings without a default.", &mut required.map(|row| key(&row)));
    let optional = &mut rows.iter().filter(|row| !row.required);
    names(&mut out, "OPTIONAL_KEYS", "Settings with a default.", &mut optional.map(|row| key(&row)));
    let lists = &mut rows.iter().filter(|row| row.kind == "list");
    names(&mut out, "LIST_KEYS", "Settings that hold one text a line.", &mut lists.map(|row| key(&row)));
    out.push_str("\nSETTING_DOCS: Final[dict[str, str]] = {\n");
    for row in &rows {
        writeln!(out, "    {}: {},", key(&row), python::string(&row.doc)).expect("a String takes all");
    }
    out.push_str("}\n\"\"\"One sentence for `pytest --help`.\"\"\"\n");
    out.push_str("\nPRESERVE_VARS: Final[dict[str, tuple[str, str]]] = {\n");
    for row in preserve(checkout)? {
        let (name, variable, default) = (&row.name, python::string(&row.variable), python::string(&row.default));
        writeln!(out, "    {}: ({variable}, {default}),", python::string(name)).expect("a String takes all");
    }
    out.push_str("}\n\"\"\"Caches that may be preserved: the variable, and where it points by default.\"\"\"\n");
    Ok(out)
}

fn docs_rows(out: &mut String, title: &str, rows: &[Row]) {
    write!(out, "\n{title}\n\n| name | reason |\n|---|---|\n").expect("a String takes all");
    for row in rows {
        writeln!(out, "| `{}` | {} |", row.name, cell(&row.reason)).expect("a String takes all");
    }
}

pub fn docs(checkout: &Checkout) -> Outcome<String> {
    let (credentials, git) = (credentials(checkout)?, git(checkout)?);
    let mut out = format!("<!-- {} -->\n\n# The floor's tables\n\n## Settings\n\n", mark(SOURCES));
    out.push_str("| key | accepts | default | what it does |\n|---|---|---|---|\n");
    for row in settings(checkout)? {
        let accepts = if row.choices.is_empty() { row.kind.clone() } else { row.choices.join(", ") };
        let default = row.default.as_deref().map_or("required".to_owned(), |text| match text {
            "" => "(empty)".to_owned(),
            text => format!("`{text}`"),
        });
        writeln!(out, "| `{PREFIX}{}` | {accepts} | {default} | {} |", row.name, cell(&row.doc))
            .expect("a String takes all");
    }
    out.push_str("\n## Preserved caches\n\n| name | variable | default | |\n|---|---|---|---|\n");
    for row in preserve(checkout)? {
        writeln!(out, "| `{}` | `{}` | `{}` | {} |", row.name, row.variable, row.default, cell(&row.doc))
            .expect("a String takes all");
    }
    out.push_str(
        "\n## Variables that move into the throwaway directory\n\n| variable | folder | reason |\n|---|---|---|\n",
    );
    for row in home(checkout)? {
        writeln!(out, "| `{}` | `{}` | {} |", row.name, row.folder, cell(&row.reason)).expect("a String takes all");
    }
    out.push_str("\n## git\n\nVariables that are set:\n\n| variable | value | reason |\n|---|---|---|\n");
    for pin in &git.lists.pin {
        writeln!(out, "| `{}` | `{}` | {} |", pin.name, pin.value, cell(&pin.reason)).expect("a String takes all");
    }
    out.push_str("\nThe throwaway configuration:\n\n| section | key | value | reason |\n|---|---|---|---|\n");
    for entry in &git.lists.config {
        let (section, key, value) = (&entry.section, &entry.key, &entry.value);
        writeln!(out, "| `{section}` | `{key}` | `{value}` | {} |", cell(&entry.reason)).expect("a String takes all");
    }
    let (name, email) = (&git.identity.user_name, &git.identity.user_email);
    writeln!(out, "\nThe identity is `{name} <{email}>` unless the settings name another.")
        .expect("a String takes all");
    docs_rows(&mut out, "Variables that are taken away, `*` stands for any run of characters:", &git.lists.remove);
    out.push_str("\n## Credentials\n\nNames are compared without case.\n");
    docs_rows(&mut out, "Taken away always:", &credentials.exact);
    docs_rows(&mut out, "Taken away unless `stricttest_keep` names the variable:", &credentials.pattern);
    Ok(out)
}
