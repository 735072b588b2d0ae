//! The `hermetic` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = hermetic_cli::run_supervisor(&args) {
        return ExitCode::from(code as u8);
    }
    ExitCode::from(hermetic_cli::run_in_process(&args) as u8)
}
