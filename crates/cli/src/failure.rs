//! Why a command cannot do what it was asked, and how that is said.

use std::io;

use crate::exit::Exit;
use crate::terminal::Terminal;

/// A failure: what failed with which value, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    /// Empty where nobody is left to hear it: the reader of our output has gone.
    pub what: String,
    pub hint: String,
}

impl Failure {
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, what: what.into(), hint: hint.into() }
    }

    pub fn unreadable(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { exit: Exit::Unreadable, what: what.into(), hint: hint.into() }
    }

    /// Writes `hermetic: what`, and the hint in a line of its own.
    pub(crate) fn report(&self, terminal: &mut Terminal<'_>) -> io::Result<()> {
        if self.what.is_empty() {
            return Ok(());
        }
        let name = terminal.paint("1;31", "hermetic:");
        writeln!(terminal.err, "{name} {}", self.what)?;
        if !self.hint.is_empty() {
            let name = terminal.paint("1", "hint:");
            writeln!(terminal.err, "  {name} {}", self.hint)?;
        }
        terminal.err.flush()
    }
}

/// Writing the answer failed. A closed pipe is how `head` says that it has enough: a quiet success.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::Ok, what: String::new(), hint: String::new() };
        }
        Failure::unreadable(format!("cannot write the answer: {error}"), "is the disk full?")
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Failure {
        Failure::usage(error.to_string(), "see `hermetic --help`")
    }
}
