//! Releases of the server, as `postgres --version` tells them.

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Kind, Result};

/// The oldest release that is supported: `DROP DATABASE … WITH (FORCE)` came with it.
pub const MAJOR_OLDEST: u32 = 13;
/// From this release on `CREATE DATABASE` has a `STRATEGY`; before it, files were always copied.
const MAJOR_WITH_STRATEGY: u32 = 15;
/// From this release on `initdb` makes checksums unless told otherwise.
const MAJOR_WITH_CHECKSUMS: u32 = 18;

/// A release: the whole line, which is part of the cache's key, and its first number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub line: String,
    pub major: u32,
}

impl Version {
    /// Reads a line such as `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
    ///
    /// ```
    /// use hermetic_pg::Version;
    /// assert_eq!(Version::parse("postgres (PostgreSQL) 18beta1").unwrap().major, 18);
    /// ```
    ///
    /// # Errors
    /// [`Kind::Version`] for another program, or a release older than [`MAJOR_OLDEST`].
    pub fn parse(line: &str) -> Result<Version> {
        let line = line.trim();
        let digits = line.split_once("(PostgreSQL) ").map(|(_, rest)| rest);
        let digits = digits.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let major = digits.and_then(|digits| digits.parse().ok());
        let accepted = format!("releases from {MAJOR_OLDEST} on are supported; install one, or name its directory");
        match major {
            None => Err(Error::new(Kind::Version, format!("{line:?} is no version of PostgreSQL: {accepted}"))),
            Some(major) if major < MAJOR_OLDEST => {
                Err(Error::new(Kind::Version, format!("PostgreSQL {major} ({line}) is too old: {accepted}")))
            }
            Some(major) => Ok(Version { line: line.to_owned(), major }),
        }
    }

    /// Asks the program itself.
    ///
    /// # Errors
    /// [`Kind::Unavailable`] if it cannot be run; as [`Version::parse`].
    pub fn ask(postgres: &Path) -> Result<Version> {
        let command = format!("{} --version", postgres.display());
        let done = Command::new(postgres).arg("--version").env_remove("LD_PRELOAD").env("LC_ALL", "C").output();
        let done = done.map_err(crate::error::io(Kind::Unavailable, format!("cannot run {command}")))?;
        if !done.status.success() {
            let error = Error::new(Kind::Unavailable, format!("{command} ended with {}", done.status));
            return Err(error.with_output(String::from_utf8_lossy(&done.stderr)));
        }
        Version::parse(&String::from_utf8_lossy(&done.stdout))
    }

    /// The clause that makes `CREATE DATABASE` copy files, which is the quickest way on a file system in memory.
    pub fn strategy(&self) -> &'static str {
        if self.major >= MAJOR_WITH_STRATEGY {
            " STRATEGY FILE_COPY"
        } else {
            ""
        }
    }

    /// Arguments of `initdb` that only some releases know.
    pub fn initdb_arguments(&self) -> &'static [&'static str] {
        if self.major >= MAJOR_WITH_CHECKSUMS {
            &["--no-data-checksums"]
        } else {
            &[]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_apart() {
        let debian = Version::parse("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n").unwrap();
        assert_eq!((debian.major, debian.strategy()), (15, " STRATEGY FILE_COPY"));
        assert_eq!(Version::parse("postgres (PostgreSQL) 14.2").unwrap().strategy(), "");
        assert_eq!(Version::parse("postgres (PostgreSQL) 18.4").unwrap().initdb_arguments().len(), 1);
    }

    #[test]
    fn others_are_refused_by_name() {
        let old = Version::parse("postgres (PostgreSQL) 9.6.24").unwrap_err();
        assert_eq!(old.kind, Kind::Version);
        assert!(old.what.contains("9.6.24") && old.what.contains("from 13 on"), "{}", old.what);
        assert_eq!(Version::parse("mysqld 8").unwrap_err().kind, Kind::Version);
    }
}
