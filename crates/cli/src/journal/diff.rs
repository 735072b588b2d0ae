//! `hermetic journal diff`: where two runs of a test part.

use std::path::Path;

use hermetic_journal::diff::{Difference, Side, ThreadDiff};
use hermetic_journal::{diff, Journal};
use lexopt::Parser;

use super::{one_line, open, shown, Given};
use crate::command::Command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

pub(super) const COMMAND: Command = Command {
    name: "diff",
    summary: "compare two journals, thread by thread",
    help: "\
Compares two journals thread by thread: where their paths part, and which answers differ before that.

Usage: hermetic journal diff LEFT RIGHT

Exit code 0: the events are the same; 1: they differ.
",
    run,
};

fn run(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(given) = Given::read(parser, &COMMAND, &[], terminal)? else { return Ok(Exit::Ok) };
    let [left_path, right_path] = given.files(&COMMAND)?;
    let (left, right) = (open(&left_path)?, open(&right_path)?);
    let found = diff(&left, &right);
    write_source(terminal, "left", &left_path, &left)?;
    write_source(terminal, "right", &right_path, &right)?;
    if !found.head.is_empty() {
        writeln!(terminal.out, "\nheads differ")?;
        let width = found.head.iter().map(|(name, _, _)| name.chars().count()).max().unwrap_or(0);
        for (name, left, right) in &found.head {
            writeln!(terminal.out, "  {name:<width$}  {left} | {right}")?;
        }
    }
    writeln!(terminal.out)?;
    for thread in &found.threads {
        write_thread(terminal, thread)?;
    }
    let differing = found.threads.iter().filter(|thread| !thread.is_same()).count();
    if differing == 0 {
        writeln!(terminal.out, "the same events")?;
        return Ok(Exit::Ok);
    }
    writeln!(terminal.out, "{differing} of {} threads differ", found.threads.len())?;
    Ok(Exit::Found)
}

fn write_source(terminal: &mut Terminal<'_>, side: &str, path: &Path, journal: &Journal) -> Result<(), Failure> {
    let test = journal.head().test.map(|test| format!("  {}", one_line(&test))).unwrap_or_default();
    writeln!(terminal.out, "{side:<5}  {}{test}", shown(path.as_os_str()))?;
    Ok(())
}

fn write_thread(terminal: &mut Terminal<'_>, thread: &ThreadDiff) -> Result<(), Failure> {
    let [left, right] = thread.events;
    let name = format!("thread {}", thread.thread);
    if thread.is_same() {
        writeln!(terminal.out, "{name}: same, {left} events\n")?;
        return Ok(());
    }
    if let Some(value) = &thread.value {
        let counts: Vec<String> = thread.values.iter().map(|(label, count)| format!("{count} {label}")).collect();
        let title = format!("{name}: other answers at the same places ({}), first at its event", counts.join(", "));
        write_difference(terminal, &format!("{title} {}", value.index), value)?;
    }
    if let Some(path) = &thread.path {
        let title = format!("{name}: the paths part at its event {} (of {left} left, {right} right)", path.index);
        write_difference(terminal, &title, path)?;
    }
    Ok(())
}

fn write_difference(terminal: &mut Terminal<'_>, title: &str, difference: &Difference) -> Result<(), Failure> {
    writeln!(terminal.out, "{}", terminal.paint("1", title))?;
    let sides = [("left", &difference.left), ("right", &difference.right)];
    let widths = sides.iter().filter_map(|(_, side)| side.as_ref());
    let width = widths.map(|side| side.value.chars().count()).max().unwrap_or(0);
    for (name, side) in sides {
        let line = match side {
            Some(Side { label, value, site }) => format!("  {name:<5}  {label:<10}  {value:<width$}  {site}"),
            None => format!("  {name:<5}  no more events"),
        };
        writeln!(terminal.out, "{}", line.trim_end())?;
    }
    writeln!(terminal.out)?;
    Ok(())
}
