//! Named bounds, so that no text of a program's making costs more than it is worth.

/// Wrappers, aliases, shells and includes inside each other that are followed.
pub const DEPTH_MAX: usize = 12;

/// Longest shell script that is read, in bytes; longer ones are left to what watches git itself.
pub const SCRIPT_LEN_MAX: usize = 256 * 1024;

/// Commands of one script that are looked at.
pub const COMMANDS_MAX: usize = 4096;

/// Folders that are walked up in search of a repository.
pub const FOLDERS_MAX: usize = 256;

/// Longest configuration file that is read, in bytes.
pub const CONFIG_LEN_MAX: usize = 1024 * 1024;
