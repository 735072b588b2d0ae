//! The table of commands, and how the command line finds its row.

use std::ffi::OsString;

use lexopt::{Arg, Parser};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// One command. A new one is a new row in [`COMMANDS`] and a module with its `run`.
pub struct Command {
    pub name: &'static str,
    /// One line for the list of commands.
    pub summary: &'static str,
    /// What `--help` prints; begins with the usage.
    pub help: &'static str,
    /// Reads the rest of the command line and does the work.
    pub run: fn(Parser, &mut Terminal<'_>) -> Result<Exit, Failure>,
}

/// All commands, in the order of the help text.
pub const COMMANDS: &[Command] = &[crate::journal::COMMAND, crate::pg::COMMAND];

/// The release, as `--version` prints it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn dispatch(args: &[OsString], terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let mut parser = Parser::from_args(args.iter().cloned());
    match parser.next()? {
        None => {
            write_help(terminal)?;
            Ok(Exit::Usage)
        }
        Some(Arg::Short('h') | Arg::Long("help")) => write_help(terminal),
        Some(Arg::Short('V') | Arg::Long("version")) => {
            writeln!(terminal.out, "hermetic {VERSION}")?;
            Ok(Exit::Ok)
        }
        Some(Arg::Value(name)) => {
            let command = find(COMMANDS, "command", "hermetic", &name)?;
            (command.run)(parser, terminal)
        }
        Some(other) => Err(Failure::usage(other.unexpected().to_string(), "see `hermetic --help`")),
    }
}

/// The row with that name, or a failure that lists all.
pub(crate) fn find<'a>(
    commands: &'a [Command],
    noun: &str,
    program: &str,
    name: &OsString,
) -> Result<&'a Command, Failure> {
    let known = || commands.iter().map(|command| command.name).collect::<Vec<_>>().join(", ");
    commands.iter().find(|command| name == command.name).ok_or_else(|| {
        let what = format!("unknown {noun}: {}", name.to_string_lossy());
        Failure::usage(what, format!("one of: {}; see `{program} --help`", known()))
    })
}

/// The lines of a list of commands.
pub(crate) fn list(commands: &[Command]) -> String {
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or(0);
    commands.iter().map(|command| format!("  {:<width$}  {}\n", command.name, command.summary)).collect()
}

fn write_help(terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    write!(
        terminal.out,
        "Makes test suites deterministic, isolated and replayable.\n\n\
         Usage: hermetic COMMAND ...\n\n\
         Commands:\n{}\n\
         Options:\n  -h, --help     what a command does\n  -V, --version  the release\n\n\
         Exit codes: 0 done, 1 found a difference or damage, 2 wrong usage, 3 unreadable file, 5 no cluster.\n",
        list(COMMANDS)
    )?;
    Ok(Exit::Ok)
}
