//! The `hermetic` binary: looks at the process once, and calls the library.

use std::io::{BufWriter, IsTerminal};
use std::process::ExitCode;

use hermetic_cli::{run, Terminal};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let is_terminal = std::io::stdout().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut err = std::io::stderr().lock();
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        width: columns.filter(|columns| is_terminal && *columns > 0),
        color: is_terminal && !no_color,
    };
    ExitCode::from(run(&args, &mut terminal) as u8)
}
