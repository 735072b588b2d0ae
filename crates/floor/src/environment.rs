//! The environment of a session, as a plan: which variables change, which folders and files must be there first.
//!
//! The order of the rules matters: caches are pinned to where they are while the real home is still known, then everything that is
//! taken away goes, then what points into the throwaway directory is set. The caller applies the plan and keeps what it undoes.

use crate::credentials::{self, Removal};
use crate::glob;
use crate::settings::Settings;
use crate::tables::{Row, FOLDERS, GIT_CONFIG, GIT_PINNED, GIT_REMOVED, PRESERVED};
use std::collections::BTreeMap;

/// What changes a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A cache that stays where it is.
    Preserve,
    /// Something that git would let win over directory and configuration.
    Git,
    Credential,
    /// The throwaway directory, identity or lockdown.
    Throwaway,
}

impl Cause {
    /// The name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Preserve => "preserve",
            Cause::Git => "git",
            Cause::Credential => "credential",
            Cause::Throwaway => "throwaway",
        }
    }
}

/// One variable's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub name: String,
    /// None takes the variable away.
    pub value: Option<String>,
    pub cause: Cause,
    /// For what is taken away: why.
    pub reason: &'static str,
}

/// A folder of the throwaway directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: String,
    /// Readable by its owner alone.
    pub is_private: bool,
}

/// What has to be done, in this order: folders, files, changes.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub folders: Vec<Folder>,
    pub files: Vec<(String, String)>,
    pub changes: Vec<Change>,
}

/// Plans the environment of a session: `variables` is the one in force, `root` the throwaway directory, an absolute path.
///
/// ```
/// use hermetic_floor::environment::plan;
/// use hermetic_floor::settings::Settings;
/// let variables = vec![("HOME".to_owned(), "/home/dev".to_owned()), ("GH_TOKEN".to_owned(), "x".to_owned())];
/// let plan = plan(&variables, "/tmp/t", &Settings::default());
/// let of = |name: &str| plan.changes.iter().find(|change| change.name == name).unwrap().value.clone();
/// assert_eq!(of("HOME").as_deref(), Some("/tmp/t/home"));
/// assert_eq!(of("GH_TOKEN"), None);
/// ```
pub fn plan(variables: &[(String, String)], root: &str, settings: &Settings) -> Plan {
    let mut plan = Plan::default();
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>, cause: Cause, reason: &'static str| {
        let change = Change { name: name.to_owned(), value, cause, reason };
        changes.insert(change.name.clone(), change);
    };
    for (name, _) in variables {
        if let Some(row) = git_row(name) {
            put(name, None, Cause::Git, row.reason);
        } else if let Some(row) = credential_row(name, settings) {
            put(name, None, Cause::Credential, row.reason);
        }
    }
    for (name, value) in preserved(variables, settings) {
        put(name, Some(value), Cause::Preserve, "");
    }
    for row in FOLDERS {
        let path = format!("{root}/{}", row.folder);
        if !plan.folders.iter().any(|folder| folder.path == path) {
            plan.folders.push(Folder { path: path.clone(), is_private: row.is_private });
        }
        put(row.name, Some(path), Cause::Throwaway, "");
    }
    let gitconfig = format!("{root}/gitconfig");
    plan.files.push((gitconfig.clone(), config_text(settings)));
    for pin in GIT_PINNED {
        let value = fill(pin.value, settings).replace("{gitconfig}", &gitconfig);
        put(pin.name, Some(value), Cause::Throwaway, "");
    }
    plan.changes = changes.into_values().collect();
    plan
}

fn git_row(name: &str) -> Option<&'static Row> {
    GIT_REMOVED.iter().find(|row| glob::matches(row.name, name))
}

fn credential_row(name: &str, settings: &Settings) -> Option<&'static Row> {
    match credentials::find(name)? {
        Removal::Pattern(_) if settings.keep.iter().any(|kept| kept == name) => None,
        removal => Some(removal.row()),
    }
}

/// The caches that stay, with where they are now.
fn preserved(variables: &[(String, String)], settings: &Settings) -> Vec<(&'static str, String)> {
    let of = |name: &str| {
        let found = variables.iter().find(|(own, value)| own == name && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    let home = of("HOME");
    let gopath = of("GOPATH").or_else(|| home.as_ref().map(|home| format!("{home}/go")));
    let rows = PRESERVED.iter().filter(|row| settings.preserve.iter().any(|name| name == row.name));
    let place = |row: &crate::tables::Preserve| {
        if let Some(value) = of(row.variable) {
            return Some(value);
        }
        let base = if row.default.contains("{gopath}") { gopath.as_ref() } else { home.as_ref() };
        Some(row.default.replace("{gopath}", base?).replace("{home}", base?))
    };
    rows.filter_map(|row| Some((row.variable, place(row)?))).collect()
}

fn fill(text: &str, settings: &Settings) -> String {
    text.replace("{user_name}", &settings.git_user_name).replace("{user_email}", &settings.git_user_email)
}

/// The throwaway configuration of git.
pub fn config_text(settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for entry in GIT_CONFIG {
        if entry.section != section {
            section = entry.section;
            text.push_str(&format!("[{section}]\n"));
        }
        text.push_str(&format!("\t{} = {}\n", entry.key, quoted(&fill(entry.value, settings))));
    }
    text
}

/// A value as git reads it back: quoted where it needs to be.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "@._-+/ ".contains(letter);
    if value.chars().all(is_plain) && value.trim() == value {
        return value.to_owned();
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}
