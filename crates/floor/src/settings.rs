//! Settings: from what a configuration file says to checked values, or to everything that is wrong with it at once.

use crate::credentials::{self, Removal};
use crate::tables::{Kind, Setting, PRESERVED, SETTINGS};
use hermetic_policy::{Entry, Policy, Scope};
use std::collections::BTreeMap;

/// A value as the configuration gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    Text(String),
    List(Vec<String>),
}

/// Checked settings. The default is the most restrictive stance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub sockets: String,
    /// As written, for example `example.com:443`.
    pub socket_allowlist: Vec<String>,
    pub unix_socket_allowlist: Vec<String>,
    pub loopback: String,
    pub sandbox_required: bool,
    pub threshold: u64,
    pub sandbox_env: String,
    pub runner_command: String,
    pub tmp_prefix: String,
    pub git_user_name: String,
    pub git_user_email: String,
    pub preserve: Vec<String>,
    pub keep: Vec<String>,
    pub leaks: String,
    pub import_cwd: String,
}

impl Default for Settings {
    fn default() -> Settings {
        let safest: BTreeMap<String, Raw> =
            SETTINGS.iter().filter(|row| row.default.is_none()).map(|row| (row.name.to_owned(), safest(row))).collect();
        match read(&safest) {
            Ok(settings) => settings,
            Err(problems) => unreachable!("the table's own values are refused: {problems:?}"),
        }
    }
}

fn safest(row: &Setting) -> Raw {
    match row.kind {
        Kind::List => Raw::List(Vec::new()),
        _ => Raw::Text(row.safest.to_owned()),
    }
}

/// Names of the required settings that are not there.
pub fn missing(given: &BTreeMap<String, Raw>) -> Vec<&'static str> {
    let rows = SETTINGS.iter().filter(|row| row.default.is_none());
    rows.map(|row| row.name).filter(|name| !given.contains_key(*name)).collect()
}

/// Reads settings, by names without their prefix. The error lists every problem, each a sentence that names key and value;
/// required settings that are missing are not among them (see [`missing`]) and are read as the safest value.
///
/// ```
/// use hermetic_floor::settings::{read, Raw};
/// let given = [("loopback".to_owned(), Raw::Text("maybe".to_owned()))].into();
/// assert!(read(&given).unwrap_err()[0].contains("\"deny\" or \"allow\""));
/// ```
pub fn read(given: &BTreeMap<String, Raw>) -> Result<Settings, Vec<String>> {
    let mut reader = Reader { given, problems: Vec::new() };
    reader.refuse_unknown();
    let settings = Settings {
        sockets: reader.choice("sockets"),
        socket_allowlist: reader.list("socket_allowlist"),
        unix_socket_allowlist: reader.list("unix_socket_allowlist"),
        loopback: reader.choice("loopback"),
        sandbox_required: reader.switch("sandbox_required"),
        threshold: reader.count("threshold"),
        sandbox_env: reader.text("sandbox_env"),
        runner_command: reader.text("runner_command"),
        tmp_prefix: reader.text("tmp_prefix"),
        git_user_name: reader.text("git_user_name"),
        git_user_email: reader.text("git_user_email"),
        preserve: reader.list("preserve"),
        keep: reader.list("keep"),
        leaks: reader.choice("leaks"),
        import_cwd: reader.choice("import_cwd"),
    };
    reader.check_network(&settings);
    reader.check_names(&settings);
    if reader.problems.is_empty() {
        Ok(settings)
    } else {
        Err(reader.problems)
    }
}

struct Reader<'given> {
    given: &'given BTreeMap<String, Raw>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn problem(&mut self, key: &str, text: String) {
        self.problems.push(format!("stricttest_{key}: {text}"));
    }

    fn refuse_unknown(&mut self) {
        for key in self.given.keys().filter(|key| !SETTINGS.iter().any(|row| row.name == **key)) {
            let near = nearest(key, SETTINGS.iter().map(|row| row.name));
            let hint = near.map_or(String::new(), |name| format!("; did you mean stricttest_{name}?"));
            self.problems.push(format!("stricttest_{key}: there is no such setting{hint}"));
        }
    }

    /// The text of a setting: as given, else its default, else the safest.
    fn text(&mut self, key: &str) -> String {
        let Some(row) = SETTINGS.iter().find(|row| row.name == key) else { return String::new() };
        let fallback = row.default.unwrap_or(row.safest);
        match self.given.get(key) {
            None => fallback.to_owned(),
            Some(Raw::Text(text)) if text.trim().is_empty() && row.default.is_some() => fallback.to_owned(),
            Some(Raw::Text(text)) => text.trim().to_owned(),
            Some(Raw::List(list)) => {
                self.problem(key, format!("{list:?} is a list; accepted is one text"));
                fallback.to_owned()
            }
        }
    }

    fn choice(&mut self, key: &str) -> String {
        let text = self.text(key);
        let row = SETTINGS.iter().find(|row| row.name == key);
        let Some(Kind::Choice(choices)) = row.map(|row| row.kind) else { return text };
        if !choices.contains(&text.as_str()) {
            let accepted: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
            self.problem(key, format!("{text:?} is not accepted; write {}", accepted.join(" or ")));
        }
        text
    }

    fn switch(&mut self, key: &str) -> bool {
        let text = self.text(key).to_lowercase();
        let is_on = ["1", "true", "yes", "on"].contains(&text.as_str());
        if !is_on && !["0", "false", "no", "off"].contains(&text.as_str()) {
            self.problem(key, format!("{text:?} is not accepted; write \"true\" or \"false\""));
        }
        is_on
    }

    fn count(&mut self, key: &str) -> u64 {
        let text = self.text(key);
        match text.parse() {
            Ok(count) if count >= 1 => count,
            _ => {
                self.problem(key, format!("{text:?} is not accepted; write a whole number from 1"));
                1
            }
        }
    }

    /// One entry a line; doubled ones are dropped.
    fn list(&mut self, key: &str) -> Vec<String> {
        let lines: Vec<String> = match self.given.get(key) {
            None => Vec::new(),
            Some(Raw::List(list)) => list.clone(),
            Some(Raw::Text(text)) => text.lines().map(str::to_owned).collect(),
        };
        let mut list = Vec::new();
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
            if !list.iter().any(|own| own == line) {
                list.push(line.to_owned());
            }
        }
        list
    }

    fn check_network(&mut self, settings: &Settings) {
        if settings.sockets == "deny" && !settings.socket_allowlist.is_empty() {
            let list = settings.socket_allowlist.join(", ");
            let text = format!(
                "it names {list}, but stricttest_sockets is \"deny\", which reaches nothing; write \
                                stricttest_sockets = \"allowlist\" or empty the list"
            );
            self.problem("socket_allowlist", text);
        }
        let mut policy = Policy::new(false, false);
        for entry in &settings.socket_allowlist {
            if let Err(text) = check_host_entry(entry) {
                self.problem("socket_allowlist", text);
            } else if let Err(error) = policy.add(entry) {
                self.problem("socket_allowlist", error.to_string());
            }
        }
        for entry in &settings.unix_socket_allowlist {
            if let Err(text) = check_unix_entry(entry) {
                self.problem("unix_socket_allowlist", text);
            } else if let Err(error) = policy.add(entry) {
                self.problem("unix_socket_allowlist", error.to_string());
            }
        }
    }

    fn check_names(&mut self, settings: &Settings) {
        for name in &settings.preserve {
            if !PRESERVED.iter().any(|row| row.name == name) {
                let valid: Vec<&str> = PRESERVED.iter().map(|row| row.name).collect();
                self.problem(
                    "preserve",
                    format!("{name:?} is not one of the caches; accepted are {}", valid.join(", ")),
                );
            }
        }
        for name in &settings.keep {
            match credentials::find(name) {
                Some(Removal::Pattern(_)) => {}
                Some(Removal::Exact(row)) => {
                    let text = format!("{name:?} is a credential by its own name ({}) and cannot be kept", row.reason);
                    self.problem("keep", text);
                }
                None => self.problem("keep", format!("{name:?} would stay anyway: no pattern matches it; drop it")),
            }
        }
        if settings.tmp_prefix.contains('/') {
            self.problem("tmp_prefix", format!("{:?} has a slash; it is the beginning of a name", settings.tmp_prefix));
        }
    }
}

/// An entry for hosts has a port, and is about hosts.
fn check_host_entry(text: &str) -> Result<(), String> {
    let entry: Entry = text.parse().map_err(|error: hermetic_policy::EntryError| error.to_string())?;
    if matches!(entry.scope(), Scope::Path(_) | Scope::Folder(_) | Scope::Abstract(_)) {
        return Err(format!(
            "{text:?} is a unix socket and can never match here; move it to stricttest_unix_socket_allowlist"
        ));
    }
    if entry.port().is_some() || text.ends_with(":*") {
        return Ok(());
    }
    Err(format!("{text:?} has no port; write {}", with_port(text, "443")))
}

fn with_port(text: &str, port: &str) -> String {
    let host = if text.contains(':') && !text.starts_with('[') && !text.contains('/') {
        format!("[{text}]")
    } else {
        text.to_owned()
    };
    format!("\"{host}:{port}\", or \"{host}:*\" for every port")
}

fn check_unix_entry(text: &str) -> Result<(), String> {
    let path = text.strip_prefix("unix:").unwrap_or(text);
    if !path.starts_with(['/', '@']) {
        let text = format!("{text:?} is no absolute path and can never match; write one, or unix:@name");
        return Err(text);
    }
    let entry: Entry = text.parse().map_err(|error: hermetic_policy::EntryError| error.to_string())?;
    match entry.scope() {
        Scope::Path(_) | Scope::Folder(_) | Scope::Abstract(_) => Ok(()),
        _ => {
            Err(format!("{text:?} is no unix socket and can never match here; move it to stricttest_socket_allowlist"))
        }
    }
}

/// The entries of both lists, as the policy takes them.
pub fn entries(settings: &Settings) -> impl Iterator<Item = &str> {
    let hosts = settings.socket_allowlist.iter().filter(|_| settings.sockets == "allowlist");
    hosts.chain(&settings.unix_socket_allowlist).map(String::as_str)
}

/// The name that is spelled most alike, if one is close.
fn nearest<'name>(key: &str, names: impl Iterator<Item = &'name str>) -> Option<&'name str> {
    let best = names.map(|name| (distance(key, name), name)).min()?;
    (best.0 <= 3).then_some(best.1)
}

/// Letters to change, add or drop to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, other_letter) in other.iter().enumerate() {
            let change = corner + usize::from(letter != *other_letter);
            corner = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

/// The form of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `pytest.ini`, `tox.ini`: section `[pytest]`.
    Ini,
    /// `setup.cfg`: section `[tool:pytest]`.
    Cfg,
    /// `pyproject.toml`: table `[tool.pytest.ini_options]`.
    Toml,
    /// `pyproject.toml` with pytest's own table `[tool.pytest]`.
    NativeToml,
    /// `pytest.toml`: table `[pytest]`.
    PytestToml,
}

impl Syntax {
    /// The syntax of a file, by its name; `is_native` says that pytest read its own table of a `pyproject.toml`.
    pub fn of(file: Option<&str>, is_native: bool) -> Syntax {
        let name = file.and_then(|file| file.rsplit('/').next()).unwrap_or("pyproject.toml");
        match name {
            "pytest.toml" | ".pytest.toml" => Syntax::PytestToml,
            name if name.ends_with(".cfg") => Syntax::Cfg,
            name if name.ends_with(".toml") && is_native => Syntax::NativeToml,
            name if name.ends_with(".toml") => Syntax::Toml,
            _ => Syntax::Ini,
        }
    }

    fn section(self) -> &'static str {
        match self {
            Syntax::Ini | Syntax::PytestToml => "[pytest]",
            Syntax::Cfg => "[tool:pytest]",
            Syntax::Toml => "[tool.pytest.ini_options]",
            Syntax::NativeToml => "[tool.pytest]",
        }
    }
}

/// A block to paste that declares the named settings in their most restrictive form.
///
/// ```
/// use hermetic_floor::settings::{block, Syntax};
/// let text = block(&["sockets", "socket_allowlist"], Syntax::Toml);
/// assert_eq!(text, "[tool.pytest.ini_options]\nstricttest_sockets = \"deny\"\nstricttest_socket_allowlist = []\n");
/// ```
pub fn block(names: &[&str], syntax: Syntax) -> String {
    let is_ini = matches!(syntax, Syntax::Ini | Syntax::Cfg);
    let mut text = format!("{}\n", syntax.section());
    for row in SETTINGS.iter().filter(|row| names.contains(&row.name)) {
        let value = match (row.kind, is_ini) {
            (Kind::List, true) => String::new(),
            (Kind::List, false) => "[]".to_owned(),
            (_, true) => row.safest.to_owned(),
            (_, false) => format!("{:?}", row.safest),
        };
        text.push_str(format!("stricttest_{} = {value}", row.name).trim_end());
        text.push('\n');
    }
    text
}

/// Whether a run is refused because it is large and outside of the sandbox runner.
///
/// ```
/// use hermetic_floor::settings::{is_bare_run_refused, Settings};
/// let settings = Settings { sandbox_required: true, ..Settings::default() };
/// assert!(is_bare_run_refused(&settings, 51, None));
/// assert!(!is_bare_run_refused(&settings, 50, None) && !is_bare_run_refused(&settings, 51, Some("1")));
/// ```
pub fn is_bare_run_refused(settings: &Settings, tests: u64, handshake: Option<&str>) -> bool {
    settings.sandbox_required && handshake != Some("1") && tests > settings.threshold
}
