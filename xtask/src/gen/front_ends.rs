//! What the Go module and the npm package need of the floor's tables, in neither language yet.
//!
//! Two differences from Python's floor are decided here, for both: the variables of git fall into those of its configuration
//! and those of its transports, each with a helper of its own, and `GIT_ASKPASS` is taken away as a credential and not pinned.

use super::floor::{self, Git, Preserve, Row};
use crate::checkout::{Checkout, Outcome};

pub const SOURCES: &str = "spec/{credentials,preserve,git-lockdown,settings}.toml";
/// Pinned variables that close a transport; all others belong to configuration and identity.
const TRANSPORT_PINS: [&str; 3] = ["GIT_ALLOW_PROTOCOL", "GIT_PROXY_COMMAND", "GIT_SSH_COMMAND"];
/// The path of a configuration file, known to a front end only when it made the file.
const GIT_CONFIG_PATH: &str = "{gitconfig}";

/// A name and what belongs to it.
pub type Pair = (String, String);

pub struct Tables {
    /// Taken away always, in upper case.
    pub credentials: Vec<String>,
    /// Taken away unless kept, in upper case; `*` stands for any run of characters.
    pub patterns: Vec<String>,
    pub preserved: Vec<Preserve>,
    pub identity: Pair,
    /// The text of git's throwaway configuration file.
    pub git_config: String,
    /// Variables that name that file.
    pub git_config_paths: Vec<String>,
    pub git_pins: Vec<Pair>,
    pub transport_pins: Vec<Pair>,
    /// Taken away from git; `*` stands for any run of characters.
    pub git_removed: Vec<String>,
    /// The settings of the bare-run refusal: variable, command, and how many tests may run bare.
    pub sandbox_env: String,
    pub runner_command: String,
    pub threshold: String,
}

pub fn read(checkout: &Checkout) -> Outcome<Tables> {
    let (credentials, git) = (floor::credentials(checkout)?, floor::git(checkout)?);
    let credential_names = names(&credentials.exact);
    let is_pinned = |name: &String| !credential_names.contains(name);
    let mut git_config_paths = Vec::new();
    let (mut git_pins, mut transport_pins) = (Vec::new(), Vec::new());
    for pin in git.lists.pin.iter().filter(|pin| is_pinned(&pin.name)) {
        let pair = (pin.name.clone(), filled(&pin.value, &git));
        match pin.name.as_str() {
            _ if pin.value == GIT_CONFIG_PATH => git_config_paths.push(pair.0),
            name if TRANSPORT_PINS.contains(&name) => transport_pins.push(pair),
            _ => git_pins.push(pair),
        }
    }
    if transport_pins.len() != TRANSPORT_PINS.len() {
        return Err(format!("spec/git-lockdown.toml: must pin all of {TRANSPORT_PINS:?}"));
    }
    Ok(Tables {
        credentials: credential_names,
        patterns: names(&credentials.pattern),
        preserved: floor::preserve(checkout)?,
        identity: (git.identity.user_name.clone(), git.identity.user_email.clone()),
        git_config: git_config(&git),
        git_config_paths,
        git_pins,
        transport_pins,
        git_removed: names(&git.lists.remove),
        sandbox_env: floor::default_of(checkout, "sandbox_env")?,
        runner_command: floor::default_of(checkout, "runner_command")?,
        threshold: floor::default_of(checkout, "threshold")?,
    })
}

fn names(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.name.clone()).collect()
}

fn filled(value: &str, git: &Git) -> String {
    value.replace("{user_name}", &git.identity.user_name).replace("{user_email}", &git.identity.user_email)
}

/// Entries of one section stand together under its head, as git itself writes them.
fn git_config(git: &Git) -> String {
    let mut text = String::new();
    let mut section = "";
    for entry in &git.lists.config {
        if entry.section != section {
            section = &entry.section;
            text.push_str(&format!("[{section}]\n"));
        }
        text.push_str(&format!("\t{} = {}\n", entry.key, filled(&entry.value, git)));
    }
    text
}

/// `go_mod_cache` as `GoModCache`.
pub fn pascal_case(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// `go_mod_cache` as `goModCache`.
pub fn camel_case(name: &str) -> String {
    let pascal = pascal_case(name);
    pascal[..1].to_lowercase() + &pascal[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_their_case_as_each_language_wants() {
        assert_eq!(pascal_case("go_mod_cache"), "GoModCache");
        assert_eq!(camel_case("python_user_base"), "pythonUserBase");
    }

    #[test]
    fn what_a_front_end_removes_it_does_not_pin() {
        let tables = read(&Checkout::find().unwrap()).unwrap();
        assert!(tables.credentials.contains(&"GIT_ASKPASS".to_owned()));
        assert!(tables.git_pins.iter().chain(&tables.transport_pins).all(|(name, _)| name != "GIT_ASKPASS"));
        assert_eq!(tables.git_config_paths, ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"]);
        assert!(tables.git_config.starts_with("[user]\n\tname = stricttest\n\temail = "));
    }
}
