//! What can go wrong, as kinds that every front end maps to a class of its own. `spec/postgres.toml` is the same list.

use std::fmt;

/// What went wrong. The name is what front ends and the JSON answers call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An argument has a value that cannot be used.
    Invalid,
    /// The path of the socket is longer than the kernel takes.
    SocketPath,
    /// There is no PostgreSQL here, or no place to put a cluster, or nobody to run it as.
    Unavailable,
    /// The server programs are of a release that is not supported.
    Version,
    /// The parent of the data directory has no room.
    Space,
    /// The cache of prepared clusters cannot be read or written.
    Cache,
    /// The server did not come up.
    Start,
    /// The server has ended although nobody stopped it.
    Died,
    /// The server has no connection left.
    Connections,
    /// A statement failed.
    Statement,
    /// The cluster has been stopped, or its supervisor has gone.
    Stopped,
}

/// All kinds with their names. A test compares them with `spec/postgres.toml`.
pub const KINDS: [(Kind, &str); 11] = [
    (Kind::Invalid, "invalid"),
    (Kind::SocketPath, "socket-path"),
    (Kind::Unavailable, "unavailable"),
    (Kind::Version, "version"),
    (Kind::Cache, "cache"),
    (Kind::Space, "space"),
    (Kind::Start, "start"),
    (Kind::Died, "died"),
    (Kind::Connections, "connections"),
    (Kind::Statement, "statement"),
    (Kind::Stopped, "stopped"),
];

impl Kind {
    /// The name in messages between processes, in JSON and in `spec/postgres.toml`.
    ///
    /// ```
    /// use hermetic_pg::Kind;
    /// assert_eq!(Kind::SocketPath.name(), "socket-path");
    /// assert_eq!(Kind::of_name("socket-path"), Some(Kind::SocketPath));
    /// ```
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub fn of_name(name: &str) -> Option<Kind> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// An error: what failed with which value, and what to do; what was run, what it printed, and the end of the server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub what: String,
    pub command: String,
    pub output: String,
    pub log: String,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), command: String::new(), output: String::new(), log: String::new() }
    }

    /// Adds the command (or statement) that failed.
    pub fn of_command(mut self, command: impl Into<String>) -> Error {
        self.command = command.into();
        self
    }

    pub fn with_output(mut self, output: impl Into<String>) -> Error {
        self.output = output.into();
        self
    }

    pub fn with_log(mut self, log: impl Into<String>) -> Error {
        self.log = log.into();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.what.trim_end())?;
        for (title, text) in [("command", &self.command), ("output", &self.output), ("server log", &self.log)] {
            let text = text.trim_end();
            if text.contains('\n') {
                write!(out, "\n{title}:\n{text}")?;
            } else if !text.is_empty() {
                write!(out, "\n{title}: {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Turns an I/O error into one of ours; `what` says what was tried, with the path.
pub(crate) fn io(kind: Kind, what: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_string();
    move |error| {
        let full = error.raw_os_error() == Some(libc::ENOSPC);
        Error::new(if full { Kind::Space } else { kind }, format!("{what}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_those_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/postgres.toml");
        let table = std::fs::read_to_string(path).unwrap();
        let kinds = table.lines().filter_map(|line| line.strip_prefix("kind = \"")?.strip_suffix('"'));
        assert_eq!(kinds.collect::<Vec<_>>(), KINDS.map(|(_, name)| name));
        assert!(KINDS.iter().all(|(kind, name)| Kind::of_name(name) == Some(*kind)));
    }

    #[test]
    fn parts_that_are_empty_are_left_out() {
        let error = Error::new(Kind::Start, "it failed").of_command("initdb").with_log("one\ntwo\n");
        assert_eq!(error.to_string(), "it failed\ncommand: initdb\nserver log:\none\ntwo");
    }
}
