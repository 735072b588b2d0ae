//! The command `hermetic`, as the console script of the Python package runs it.

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal};

use hermetic_cli::{run, Terminal};
use pyo3::prelude::*;

/// Runs the command line with these arguments (without the program's name). Returns the exit code.
#[pyfunction]
pub fn run_console(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| {
        // Where the program is missing, `pg` says so when it is needed.
        let _ = crate::pg::install_helper();
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
        run(&arguments, &mut terminal) as i32
    })
}
