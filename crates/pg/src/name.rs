//! Names of databases: a closed set, because a name is put into statements.

use std::fs::File;
use std::io::Read;

use crate::error::{io, Error, Kind, Result};

/// Longest name, in bytes, that PostgreSQL keeps whole.
pub const NAME_LEN_MAX: usize = 63;

/// Checks a name that is to be created or dropped: `[A-Za-z_][A-Za-z0-9_]{0,62}`, all of it.
///
/// ```
/// use hermetic_pg::check_name;
/// assert!(check_name("orders_2").is_ok());
/// assert!(check_name("orders\n").is_err());
/// ```
///
/// # Errors
/// [`Kind::Invalid`], naming the value and what is accepted.
pub fn check_name(name: &str) -> Result<()> {
    let is_start = |letter: u8| letter.is_ascii_alphabetic() || letter == b'_';
    let is_part = |letter: &u8| is_start(*letter) || letter.is_ascii_digit();
    let bytes = name.as_bytes();
    let is_good = bytes.first().copied().is_some_and(is_start) && bytes.iter().all(is_part);
    if is_good && bytes.len() <= NAME_LEN_MAX {
        return Ok(());
    }
    Err(Error::new(
        Kind::Invalid,
        format!(
            "database name {name:?} is not accepted: a letter or underscore, then letters, digits and underscores, \
             {NAME_LEN_MAX} in all, are; the name is put into statements, so no other character may stand in it"
        ),
    ))
}

/// A fresh name: `test_` and 16 hexadecimal digits of the system's entropy.
///
/// # Errors
/// [`Kind::Unavailable`] where the system gives no entropy.
pub fn generate_name() -> Result<String> {
    Ok(format!("test_{}", random_hex(8)?))
}

/// `len` bytes of the system's entropy, in hexadecimal digits.
pub(crate) fn random_hex(len: usize) -> Result<String> {
    let mut bytes = vec![0; len];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(io(Kind::Unavailable, "cannot read /dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_closed() {
        for good in ["a", "_", "A9_z", &"x".repeat(63)] {
            check_name(good).unwrap();
        }
        for bad in ["", "1a", "a-b", "a b", "a\n", "\na", "a\"", "é", &"x".repeat(64), "a\0"] {
            assert_eq!(check_name(bad).unwrap_err().kind, Kind::Invalid, "{bad:?}");
        }
    }

    #[test]
    fn generated_names_are_accepted_and_differ() {
        let (first, second) = (generate_name().unwrap(), generate_name().unwrap());
        check_name(&first).unwrap();
        assert_ne!(first, second);
        assert_eq!(first.len(), "test_".len() + 16);
    }
}
