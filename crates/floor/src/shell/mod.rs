//! Shell scripts, as far as they can be read without running them: which commands run for certain, with which words, where.
//!
//! `token` takes a script apart, `word` expands words, `run` follows the commands. What only runs on a condition is left out.

mod run;
mod token;
mod word;

pub(crate) use run::judge;
pub use token::{tokens, Piece, Token};
