//! What can be wrong with a journal that somebody hands in.

use std::fmt;

/// Why bytes are not a usable journal. The text is one sentence for people, without the file's name: the caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was recorded: no bytes, or a scratch file whose recording never began.
    Empty,
    /// The bytes are something else than a journal.
    Foreign { what: &'static str },
    /// Written by a later release, in a format that this one does not know.
    Newer { found: u64, supported: u32 },
    /// The file ends before the journal does; both in bytes from the start of the journal.
    Truncated { have: u64, need: u64 },
    /// The bytes break the format at `offset`, counted in the raw form (for readable journals: the line).
    Corrupt { offset: u64, what: String },
    /// Unpacking would need more memory than a journal may have.
    TooLarge { bytes: u64, limit: u64 },
}

impl Error {
    pub(crate) fn corrupt(offset: usize, what: impl Into<String>) -> Error {
        Error::Corrupt { offset: offset as u64, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(out, "the journal is empty: nothing was recorded"),
            Error::Foreign { what } => write!(out, "not a Hermetic journal: {what}"),
            Error::Newer { found, supported } => write!(
                out,
                "journal format {found} is newer than this release reads (up to {supported}): \
                 use the release that recorded it, or a later one"
            ),
            Error::Truncated { have, need } => {
                write!(out, "the journal is cut off: it has {have} bytes and needs at least {need}")
            }
            Error::Corrupt { offset, what } => write!(out, "the journal is damaged at {offset}: {what}"),
            Error::TooLarge { bytes, limit } => {
                write!(out, "the journal would unpack to {bytes} bytes or more; the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for Error {}
