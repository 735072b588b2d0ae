//! `hermetic journal verify`: are these files whole?

use hermetic_journal::{verify, Journal};
use lexopt::Parser;

use super::{read, shown, Given};
use crate::command::Command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

pub(super) const COMMAND: Command = Command {
    name: "verify",
    summary: "check that journals are whole",
    help: "\
Checks journals: the checksum, the encoding of every event, and that threads and call sites are announced before use.

Usage: hermetic journal verify FILE...

Exit code 0: all are whole; 1: at least one is not; 3: a file cannot be opened.
",
    run,
};

fn run(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(given) = Given::read(parser, &COMMAND, &[], terminal)? else { return Ok(Exit::Ok) };
    if given.files.is_empty() {
        return Err(Failure::usage("`journal verify` takes at least 1 file", "see `hermetic journal verify --help`"));
    }
    let mut exit = Exit::Ok;
    for path in &given.files {
        let name = shown(path.as_os_str());
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            Err(failure) => {
                failure.report(terminal)?;
                exit = Exit::Unreadable;
                continue;
            }
        };
        let problems = match Journal::decode(&bytes) {
            Ok(journal) => {
                let problems: Vec<String> = verify(&journal).iter().map(ToString::to_string).collect();
                if problems.is_empty() {
                    writeln!(terminal.out, "{name}: {}", summary(&journal))?;
                }
                problems
            }
            Err(error) => vec![error.to_string()],
        };
        for problem in &problems {
            writeln!(terminal.out, "{name}: {}", terminal.paint("1;31", problem))?;
        }
        if !problems.is_empty() && exit == Exit::Ok {
            exit = Exit::Found;
        }
    }
    Ok(exit)
}

fn summary(journal: &Journal) -> String {
    let state = if journal.is_finished() { "whole" } else { "whole as far as it goes, not finished" };
    let (events, threads) = (journal.event_count(), journal.threads().len());
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    format!("{state}, {events} event{}, {threads} thread{}", plural(events), plural(threads as u64))
}
