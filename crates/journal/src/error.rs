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
    /// A journal of format 1, which hermetic-sandbox 0.1.0 wrote.
    Older,
    /// Written by a later release, in a format that this one does not know.
    Newer { found: u64, supported: u32 },
    /// The file ends before the journal does; both in bytes of the file. `need` is the least that is known to be needed.
    Truncated { have: u64, need: u64 },
    /// The bytes break the format at `offset` of the raw form.
    Corrupt { offset: u64, what: String },
    /// The readable form breaks the format at this line, counted from 1.
    Unreadable { line: u64, what: String },
    /// More bytes than a journal may have, packed or unpacked.
    TooLarge { bytes: u64, limit: u64 },
}

impl Error {
    pub(crate) fn corrupt(offset: usize, what: impl Into<String>) -> Error {
        Error::Corrupt { offset: offset as u64, what: what.into() }
    }

    /// What the reader of the message can do, as a sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Empty => "record the test again; an empty file is left when a run was killed before its first test",
            Error::Foreign { .. } => "give a file that `--hermetic-record` or `sandbox(record=...)` wrote",
            Error::Older => "record the test again with this release",
            Error::Newer { .. } => "use the release that recorded it, or a later one",
            Error::Truncated { .. } => "copy the file again; the rest of it is missing",
            Error::Corrupt { .. } | Error::Unreadable { .. } => {
                "copy the file again, in binary mode, or record the test again"
            }
            Error::TooLarge { .. } => "use the binary form (a path that does not end in .json), or record fewer events",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(out, "the journal is empty: nothing was recorded"),
            Error::Foreign { what } => write!(out, "not a Hermetic journal: {what}"),
            Error::Older => write!(
                out,
                "journal format 1 was written by hermetic-sandbox 0.1.0; it has no threads and no call sites, and this \
                 release reads formats {} to {}",
                crate::FORMAT_VERSION_MIN,
                crate::FORMAT_VERSION
            ),
            Error::Newer { found, supported } => {
                write!(out, "journal format {found} is newer than this release reads (up to {supported})")
            }
            Error::Truncated { have, need } => {
                write!(out, "the journal is cut off: it has {have} bytes and needs at least {need}")
            }
            Error::Corrupt { offset, what } => write!(out, "the journal is damaged at byte {offset}: {what}"),
            Error::Unreadable { line, what } => write!(out, "the journal is damaged in line {line}: {what}"),
            Error::TooLarge { bytes, limit } => {
                write!(out, "the journal would take {bytes} bytes or more; the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for Error {}
