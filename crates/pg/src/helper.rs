//! The program that supervisors are: this crate's own binary, or any program that hands its arguments on to [`crate::main`].

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Kind, Result};

static INSTALLED: OnceLock<Helper> = OnceLock::new();

/// How a process is started that goes on in [`crate::main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    pub program: PathBuf,
    /// Arguments before ours.
    pub words: Vec<String>,
}

impl Helper {
    /// Says, once for this process, which program to start. Without it, this process's own program is started, with the
    /// word `pg`.
    pub fn install(self) {
        // The first one stays: both name the same files.
        let _ = INSTALLED.set(self);
    }

    /// The engine's library, which lies beside the program.
    pub fn library(&self) -> PathBuf {
        // Where the dynamic linker starts the program, the last word names it.
        let program = self.words.last().map(Path::new).filter(|word| word.is_absolute()).unwrap_or(&self.program);
        program.with_file_name("libhermetic.so")
    }

    /// The program to start.
    ///
    /// # Errors
    /// [`Kind::Unavailable`] where the system does not tell which program this is.
    pub fn current() -> Result<Helper> {
        if let Some(helper) = INSTALLED.get() {
            return Ok(helper.clone());
        }
        let program = std::env::current_exe()
            .map_err(|error| Error::new(Kind::Unavailable, format!("cannot tell which program this is: {error}")))?;
        Ok(Helper { program, words: vec!["pg".to_owned()] })
    }
}
