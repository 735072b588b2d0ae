//! The command line on the process's own standard streams: the one place that looks at the environment.

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal};

use crate::exit::Exit;
use crate::terminal::Terminal;

/// Runs the command line `args`, without the program's name, on standard output and standard error.
///
/// Colour needs a terminal and an environment without `NO_COLOR`; lines are shortened to the width of the terminal, or to
/// `COLUMNS` where that is set. A pipe gets plain, whole lines.
pub fn run_in_process(args: &[OsString]) -> Exit {
    let is_terminal = std::io::stdout().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut err = std::io::stderr().lock();
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        width: columns.filter(|columns| is_terminal && *columns > 0),
        color: is_terminal && !no_color,
    };
    crate::run(args, &mut terminal)
}
