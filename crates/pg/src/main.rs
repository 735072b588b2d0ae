//! The supervisor's program, as packages carry it beside their library. People use `hermetic pg`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match hermetic_pg::main(&[], &arguments) {
        Some(code) => ExitCode::from(code as u8),
        None => {
            eprintln!("hermetic-pg: this is a part of Hermetic that it starts by itself; see `hermetic pg --help`");
            ExitCode::from(2)
        }
    }
}
