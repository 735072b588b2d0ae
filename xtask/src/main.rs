//! Chores of the workspace that no other tool does: `cargo xtask gen`, `tidy`, `layers`.
//!
//! Reads the checkout only: no network, no clock, the same output on every machine. Each command prints what is wrong and the
//! command or edit that repairs it, and ends with 0 (fine), 1 (something is wrong) or 2 (it was called wrongly).

mod checkout;
mod gen;
mod layers;
mod tidy;

use checkout::Checkout;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask gen [--check | --stdout]   write the generated files, compare them, or print them
       cargo xtask tidy                       check what formatters and linters do not
       cargo xtask layers                     compare the crates' dependencies with ARCHITECTURE.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = Checkout::find().and_then(|checkout| match words[..] {
        ["gen"] => gen::run(&checkout, gen::Mode::Write),
        ["gen", "--check"] => gen::run(&checkout, gen::Mode::Check),
        ["gen", "--stdout"] => gen::run(&checkout, gen::Mode::Print),
        ["tidy"] => tidy::run(&checkout),
        ["layers"] => layers::run(&checkout),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(1)
        }
    }
}
