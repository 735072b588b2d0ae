//! Exit codes: the part of the command line that scripts rely on.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; nothing to complain about.
    Ok = 0,
    /// The command worked and found what it looks for: a difference, a damaged journal.
    Found = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// A file cannot be read, or is not what the command needs.
    Unreadable = 3,
    /// A PostgreSQL cluster cannot be started or used.
    Postgres = 5,
}

impl Exit {
    /// The number for the operating system.
    pub fn code(self) -> i32 {
        self as i32
    }
}
