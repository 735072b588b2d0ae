//! Which variables are credentials, lead to one, or lead out of the machine.

use crate::glob::matches;
use crate::tables::{Row, CREDENTIALS, CREDENTIAL_PATTERNS};

/// Why a variable is taken away.
#[derive(Clone, Copy, Debug)]
pub enum Removal {
    /// Its name is in the table; nothing keeps it.
    Exact(&'static Row),
    /// A pattern matches its name; the settings may keep it.
    Pattern(&'static Row),
}

impl Removal {
    pub fn row(&self) -> &'static Row {
        match self {
            Removal::Exact(row) | Removal::Pattern(row) => row,
        }
    }
}

/// The row that takes a variable away, if one does.
///
/// ```
/// use hermetic_floor::credentials::find;
/// assert_eq!(find("https_proxy").unwrap().row().name, "HTTPS_PROXY");
/// ```
pub fn find(name: &str) -> Option<Removal> {
    let exact = CREDENTIALS.iter().find(|row| row.name.eq_ignore_ascii_case(name)).map(Removal::Exact);
    exact.or_else(|| CREDENTIAL_PATTERNS.iter().find(|row| matches(row.name, name)).map(Removal::Pattern))
}
