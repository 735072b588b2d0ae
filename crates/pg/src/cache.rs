//! Prepared clusters on disk: one immutable file for each release, set of options and seed.
//!
//! Entries are written under a lock, beside their final name, and renamed into place; so readers need no lock, and two runs
//! that want the same entry make it once. An entry that is damaged is removed and made anew.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermetic_model::digest::sha256;
use rustix::fs::{flock, FlockOperation};

use crate::archive::Archive;
use crate::error::{io as io_error, Error, Kind, Result};
use crate::registry::own_directory;
use crate::version::Version;

/// Part of every key: changes when what is put into an entry changes.
const SCHEMA: &str = "hermetic-pg cache 1";
/// Entries that are kept; the ones used longest ago go first.
const ENTRIES_MAX: usize = 24;

/// A directory of prepared clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    directory: PathBuf,
}

/// The right to make one entry. Others wait for it.
#[derive(Debug)]
pub struct EntryLock {
    _file: File,
}

/// A key from its parts, in hexadecimal digits.
pub fn key(parts: &[&str]) -> String {
    let lens: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_le_bytes()).collect();
    let pieces = parts.iter().zip(&lens).flat_map(|(part, len)| [&len[..], part.as_bytes()]);
    let all: Vec<&[u8]> = [SCHEMA.as_bytes()].into_iter().chain(pieces).collect();
    sha256(&all)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Cache {
    /// The given directory, or this user's own below `/var/tmp` (which outlives a throwaway home), else below `/tmp`.
    ///
    /// # Errors
    /// [`Kind::Cache`] where it cannot be made, or belongs to somebody else.
    pub fn open(given: Option<&Path>) -> Result<Cache> {
        if let Some(path) = given {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
            if !path.is_dir() {
                fs::create_dir_all(&path).map_err(|error| refused(&path, &error.to_string()))?;
            }
            return Ok(Cache { directory: path });
        }
        let user = rustix::process::geteuid().as_raw();
        let mut reasons = Vec::new();
        for parent in ["/var/tmp", "/tmp"] {
            let path = PathBuf::from(format!("{parent}/hermetic-pg-cache-{user}"));
            match own_directory(&path, user) {
                Ok(()) => return Ok(Cache { directory: path }),
                Err(reason) => reasons.push(format!("{}: {reason}", path.display())),
            }
        }
        Err(refused(Path::new("/var/tmp"), &reasons.join(", ")))
    }

    /// Where an entry is, or would be.
    pub fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.cluster"))
    }

    /// An entry, if it is there and sound.
    pub fn find(&self, key: &str) -> Option<Archive> {
        let path = self.path(key);
        match Archive::open(&path) {
            Ok(archive) => {
                // Marks the entry as used; a cache that cannot be written serves all the same.
                let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                Some(archive)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    self.forget(key);
                }
                None
            }
        }
    }

    /// Removes an entry that proved to be damaged.
    pub fn forget(&self, key: &str) {
        let _ = fs::remove_file(self.path(key));
    }

    /// Waits for the right to make an entry.
    ///
    /// # Errors
    /// [`Kind::Cache`] where the directory cannot be written.
    pub fn lock(&self, key: &str) -> Result<EntryLock> {
        let path = self.directory.join(format!("{key}.lock"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|error| refused(&self.directory, &error.to_string()))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(io::Error::from)
            .map_err(io_error(Kind::Cache, format!("cannot lock {}", path.display())))?;
        Ok(EntryLock { _file: file })
    }

    /// Removes what an interrupted maker left, and the entries used longest ago.
    pub fn tidy(&self, key: &str) {
        let _ = fs::remove_file(self.fresh(key));
        let names = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut entries: Vec<(SystemTime, PathBuf)> = names
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "cluster"))
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .collect();
        entries.sort();
        let surplus = entries.len().saturating_sub(ENTRIES_MAX);
        for (_, path) in &entries[..surplus] {
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(path.with_extension("lock"));
        }
    }

    /// The name under which an entry is written before it is complete. Only the holder of its lock uses it.
    pub fn fresh(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.fresh"))
    }

    /// The release of a server program, which is only asked again when the file has changed.
    ///
    /// # Errors
    /// As [`Version::ask`].
    pub fn version_of(&self, postgres: &Path) -> Result<Version> {
        let data = postgres
            .metadata()
            .map_err(io_error(Kind::Unavailable, format!("cannot look at {}", postgres.display())))?;
        let facts = [data.dev(), data.ino(), data.size(), data.mtime() as u64, data.mtime_nsec() as u64];
        let facts = facts.map(|fact| fact.to_string()).join(" ");
        let real = postgres.canonicalize().unwrap_or_else(|_| postgres.to_path_buf());
        let path = self.directory.join(format!("{}.version", key(&[&real.to_string_lossy(), &facts])));
        if let Some(version) = fs::read_to_string(&path).ok().and_then(|line| Version::parse(&line).ok()) {
            return Ok(version);
        }
        let version = Version::ask(postgres)?;
        let fresh = path.with_extension(format!("{}.fresh", std::process::id()));
        let _ = fs::write(&fresh, &version.line).and_then(|()| fs::rename(&fresh, &path));
        Ok(version)
    }
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::new(
        Kind::Cache,
        format!(
            "the cache of prepared clusters, {}, cannot be written: {reason}; fill it once where it can be, or name \
             another with HERMETIC_PG_CACHE",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hermetic-pg-cache-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn keys_keep_parts_apart() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_eq!(key(&["a"]).len(), 32);
    }

    #[test]
    fn a_damaged_entry_is_forgotten() {
        let root = scratch("damaged");
        let cache = Cache::open(Some(&root)).unwrap();
        fs::write(cache.path("k"), "no cluster").unwrap();
        assert!(cache.find("k").is_none());
        assert!(!cache.path("k").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_entries_used_longest_ago_go() {
        let root = scratch("many");
        let cache = Cache::open(Some(&root)).unwrap();
        for number in 0..ENTRIES_MAX + 2 {
            let file = File::create(cache.path(&number.to_string())).unwrap();
            let age = std::time::Duration::from_secs(1000 - number as u64);
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        fs::write(cache.fresh("x"), "half").unwrap();
        cache.tidy("x");
        assert!(!cache.path("1").exists() && cache.path("2").exists() && !cache.fresh("x").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_cache_in_a_place_that_is_no_directory_is_refused() {
        let error = Cache::open(Some(Path::new("/dev/null/cache"))).unwrap_err();
        assert_eq!(error.kind, Kind::Cache);
        assert!(error.what.contains("/dev/null/cache") && error.what.contains("HERMETIC_PG_CACHE"));
    }
}
