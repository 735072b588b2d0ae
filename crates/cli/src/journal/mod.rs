//! `hermetic journal`: look into recorded journals. This file finds the subcommand and opens files.

mod diff;
mod show;
mod verify;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hermetic_journal::{limits, Journal};
use lexopt::{Arg, Parser};

use crate::command::{find, list, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

pub(crate) const COMMAND: Command = Command {
    name: "journal",
    summary: "show, compare and check recorded journals",
    help: "Usage: hermetic journal COMMAND ...\n",
    run,
};

const COMMANDS: &[Command] = &[show::COMMAND, diff::COMMAND, verify::COMMAND];

/// Bytes that are read of a file. Scratch files are longer than the journal in them, by less than this.
const FILE_BYTES_MAX: u64 = 2 * limits::JOURNAL_BYTES_MAX as u64;

fn run(mut parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    match parser.next()? {
        None => {
            write_help(terminal)?;
            Ok(Exit::Usage)
        }
        Some(Arg::Short('h') | Arg::Long("help")) => write_help(terminal),
        Some(Arg::Value(name)) => {
            let command = find(COMMANDS, "journal command", "hermetic journal", &name)?;
            (command.run)(parser, terminal)
        }
        Some(other) => Err(Failure::usage(other.unexpected().to_string(), "see `hermetic journal --help`")),
    }
}

fn write_help(terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    write!(terminal.out, "{}\nCommands:\n{}", COMMAND.help, list(COMMANDS))?;
    writeln!(terminal.out, "\nA journal may be finished, readable (.json), compressed (.gz) or a scratch file.")?;
    Ok(Exit::Ok)
}

/// The command line of a subcommand: which of its flags are given, and its files.
struct Given {
    flags: Vec<String>,
    files: Vec<PathBuf>,
}

impl Given {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// Reads the rest of the command line; nothing if the answer was the help text.
    fn read(
        mut parser: Parser,
        command: &Command,
        flags: &[&str],
        terminal: &mut Terminal<'_>,
    ) -> Result<Option<Given>, Failure> {
        let mut given = Given { flags: Vec::new(), files: Vec::new() };
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => {
                    write!(terminal.out, "{}", command.help)?;
                    return Ok(None);
                }
                Arg::Long(flag) if flags.contains(&flag) => given.flags.push(flag.to_string()),
                Arg::Value(file) => given.files.push(PathBuf::from(file)),
                other => {
                    let hint = format!("see `hermetic journal {} --help`", command.name);
                    return Err(Failure::usage(other.unexpected().to_string(), hint));
                }
            }
        }
        Ok(Some(given))
    }

    /// Exactly `N` files, or a failure.
    fn files<const N: usize>(self, command: &Command) -> Result<[PathBuf; N], Failure> {
        self.files.try_into().map_err(|files: Vec<PathBuf>| {
            let noun = if N == 1 { "file" } else { "files" };
            let what = format!("`journal {}` takes {N} {noun}, not {}", command.name, files.len());
            Failure::usage(what, format!("see `hermetic journal {} --help`", command.name))
        })
    }
}

/// Reads a file, as much of it as can be a journal.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match result {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let what = format!("cannot read {}: {error}", shown(path.as_os_str()));
            Err(Failure::unreadable(what, "give the path of a journal"))
        }
    }
}

/// Reads a file and decodes it.
fn open(path: &Path) -> Result<Journal, Failure> {
    Journal::decode(&read(path)?)
        .map_err(|error| Failure::unreadable(format!("{}: {error}", shown(path.as_os_str())), error.hint()))
}

/// A name on one line, with what a terminal would act upon written out.
fn shown(name: &OsStr) -> String {
    one_line(&name.to_string_lossy())
}

fn one_line(text: &str) -> String {
    text.chars().fold(String::new(), |mut line, letter| {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
        line
    })
}
