//! What can go wrong with a sandbox.

use crate::finding::Finding;
use std::fmt;

/// Why a sandbox cannot be entered or used, or what it noticed that decides against the code inside.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option or a variable has a value that is not acceptable; the text names it and what is accepted.
    Option(String),
    /// A sandbox is active already, and sandboxes do not nest.
    Active(String),
    /// The engine cannot work in this process, or the machine refused something.
    Engine(String),
    /// A journal cannot be read, written or used.
    Journal(String),
    /// The sandbox is over; what it noticed is fatal.
    Findings(Vec<Finding>),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Option(text) | Error::Active(text) | Error::Engine(text) | Error::Journal(text) => {
                out.write_str(text)
            }
            Error::Findings(found) => {
                for (at, finding) in found.iter().enumerate() {
                    write!(out, "{}{finding}", if at == 0 { "" } else { "\n" })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}
