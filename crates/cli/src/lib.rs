//! The `hermetic` command as a library: arguments and two writers in, an exit code out.
//!
//! The binary of this crate and the console script of the Python package call [`run_in_process`]; tests call [`run`].
//! Commands are rows of a table ([`command::COMMANDS`]); each reads its own arguments and does its work through the
//! crates below. What a journal says is the journal crate's affair; this crate opens files and prints.

pub mod command;
mod exit;
mod failure;
mod journal;
mod pg;
mod process;
mod terminal;

use std::ffi::OsString;

/// The part of this program that is started by itself and not by people: the supervisor of a PostgreSQL cluster. Returns its exit
/// code, or nothing for a command line of the user's.
pub fn run_supervisor(args: &[OsString]) -> Option<i32> {
    pg::supervise(args)
}

pub use exit::Exit;
pub use failure::Failure;
pub use process::run_in_process;
pub use terminal::Terminal;

/// Runs the command line `args`, without the program's name, and returns its exit code.
///
/// Nothing is read from the environment: the caller says through `terminal` where to write, and whether in colour.
///
/// ```
/// use hermetic_cli::{run, Exit, Terminal};
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let mut terminal = Terminal { out: &mut out, err: &mut err, width: None, color: false };
/// assert_eq!(run(&["--version".into()], &mut terminal), Exit::Ok);
/// assert!(out.starts_with(b"hermetic "));
/// ```
pub fn run(args: &[OsString], terminal: &mut Terminal<'_>) -> Exit {
    let result = command::dispatch(args, terminal).and_then(|exit| {
        terminal.out.flush()?;
        Ok(exit)
    });
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            // If the place for messages is gone too, only the exit code is left to tell it.
            let _ = failure.report(terminal);
            failure.exit
        }
    }
}
