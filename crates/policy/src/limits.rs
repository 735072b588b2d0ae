//! Named bounds of a policy.

/// Entries that one policy holds. Each decision walks them all.
pub const ENTRIES_MAX: usize = 1024;

/// Addresses of allowed names that are remembered; the oldest gives way to the newest.
pub const REMEMBERED_MAX: usize = 1024;

/// Longest name of a host, as DNS has it, and of one of its labels.
pub const NAME_LEN_MAX: usize = 253;
pub const LABEL_LEN_MAX: usize = 63;

/// Longest path of a unix socket on Linux, without the closing NUL.
pub const UNIX_PATH_LEN_MAX: usize = 107;

/// Entries that the text of a stance lists before it says how many more there are.
pub const STANCE_ENTRIES_MAX: usize = 8;

/// Characters of an unacceptable entry that its error repeats.
pub const ERROR_ENTRY_LEN_MAX: usize = 120;
