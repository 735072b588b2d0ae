//! The `hermetic` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    ExitCode::from(hermetic_cli::run_in_process(&args) as u8)
}
