//! A floor as text: what a started program reads to lie on the floor of the one that started it.
//!
//! One field a line, tab after its name; `allow` lines may be added at the end while the floor lies. A tab or a line's end inside
//! a value is escaped.

use crate::floor::FloorSettings;
use std::fmt::Write;

/// First line; another format is not read.
const MAGIC: &str = "hermetic floor 1";

/// A floor that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FloorFile {
    pub allows_loopback: bool,
    pub allows_unix: bool,
    /// Policy entries, one a line.
    pub allow: String,
    pub owner: String,
    pub hint_host: String,
    pub hint_unix: String,
    /// What the user's home directory is called, and where findings go; empty for none.
    pub home: String,
    pub spool: String,
}

impl FloorFile {
    /// The floor of a program that cannot read its own: nothing is allowed.
    pub fn closed(owner: &str) -> FloorFile {
        FloorFile { owner: owner.to_owned(), ..FloorFile::default() }
    }

    pub fn settings(&self) -> FloorSettings<'_> {
        FloorSettings {
            allows_loopback: self.allows_loopback,
            allows_unix: self.allows_unix,
            allow: &self.allow,
            owner: &self.owner,
            hint_host: &self.hint_host,
            hint_unix: &self.hint_unix,
            is_inherited: true,
        }
    }
}

pub fn encode(settings: &FloorSettings<'_>, home: &str, spool: &str) -> String {
    let mut text = format!("{MAGIC}\n");
    let flags = [("loopback", settings.allows_loopback), ("unix", settings.allows_unix)];
    for (name, _) in flags.iter().filter(|(_, is_allowed)| *is_allowed) {
        let _ = writeln!(text, "{name}\t");
    }
    let texts = [
        ("owner", settings.owner),
        ("hint_host", settings.hint_host),
        ("hint_unix", settings.hint_unix),
        ("home", home),
        ("spool", spool),
    ];
    for (name, value) in texts {
        let _ = writeln!(text, "{name}\t{}", escaped(value));
    }
    settings.allow.lines().filter(|entry| !entry.is_empty()).for_each(|entry| text.push_str(&allow_line(entry)));
    text
}

/// What is added for an entry that is allowed later.
pub fn allow_line(entry: &str) -> String {
    format!("allow\t{}\n", escaped(entry))
}

/// Reads a floor; none for anything else. A line that is being added while it is read is not there yet.
pub fn decode(text: &str) -> Option<FloorFile> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if lines.next() != Some(MAGIC) {
        return None;
    }
    let mut file = FloorFile::default();
    for line in lines {
        let (name, value) = line.split_once('\t')?;
        let value = unescaped(value);
        match name {
            "loopback" => file.allows_loopback = true,
            "unix" => file.allows_unix = true,
            "allow" => {
                let _ = writeln!(file.allow, "{value}");
            }
            "owner" => file.owner = value,
            "hint_host" => file.hint_host = value,
            "hint_unix" => file.hint_unix = value,
            "home" => file.home = value,
            "spool" => file.spool = value,
            _ => return None,
        }
    }
    Some(file)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_travel() {
        let settings = FloorSettings {
            allows_loopback: true,
            allows_unix: false,
            allow: "db.example:5432\n/run/x y/",
            owner: "the\towner",
            hint_host: "ask\nfor \\n a host",
            hint_unix: "",
            is_inherited: false,
        };
        let mut text = encode(&settings, "/home/\\x", "/spool");
        text.push_str(&allow_line("late.example"));
        text.push_str("allow\thalf a li");
        let file = decode(&text).expect("it was written here");
        assert_eq!((file.home.as_str(), file.spool.as_str()), ("/home/\\x", "/spool"));
        let read = file.settings();
        assert_eq!((read.allows_loopback, read.allows_unix, read.is_inherited), (true, false, true));
        assert_eq!((read.owner, read.hint_host, read.hint_unix), ("the\towner", "ask\nfor \\n a host", ""));
        assert_eq!(read.allow, "db.example:5432\n/run/x y/\nlate.example\n");
    }

    #[test]
    fn what_is_no_floor_is_not_read() {
        assert_eq!(decode(""), None);
        assert_eq!(decode("hermetic floor 2\n"), None);
        assert_eq!(decode("hermetic floor 1\nsomething\telse\n"), None);
        assert_eq!(decode("hermetic floor 1\nno tab\n"), None);
        assert!(decode("hermetic floor 1\n").is_some());
    }
}
