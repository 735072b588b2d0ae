//! `hermetic journal show`: the timeline, or the readable form for other programs.

use hermetic_journal::timeline::{self, Layout};
use hermetic_journal::Form;
use lexopt::Parser;

use super::{open, shown, Given};
use crate::command::Command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

pub(super) const COMMAND: Command = Command {
    name: "show",
    summary: "print what a test was told, event by event",
    help: "\
Prints the timeline of a journal: the test, the machine, then one line an event.

Usage: hermetic journal show [--json | --full] FILE

Options:
  --json  the whole journal in its readable form (spec/journal.md), for other programs
  --full  every reading of a poll loop; without it, its first and last
",
    run,
};

fn run(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(given) = Given::read(parser, &COMMAND, &["json", "full"], terminal)? else { return Ok(Exit::Ok) };
    let (json, full) = (given.has("json"), given.has("full"));
    if json && full {
        return Err(Failure::usage("--json and --full exclude each other", "--json always holds every event"));
    }
    let [path] = given.files(&COMMAND)?;
    let journal = open(&path)?;
    if json {
        let text = journal
            .to_form(Form::READABLE)
            .map_err(|error| Failure::unreadable(format!("{}: {error}", shown(path.as_os_str())), error.hint()))?;
        terminal.out.write_all(&text)?;
    } else {
        let layout = Layout { width: terminal.width, color: terminal.color, full };
        timeline::write(&journal, layout, terminal.out)?;
    }
    Ok(Exit::Ok)
}
