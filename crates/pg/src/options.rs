//! What a caller can ask of a cluster, with the defaults, and the server settings that follow.

use std::path::PathBuf;
use std::time::Duration;

use crate::binaries::Binaries;
use crate::error::{Error, Kind, Result};

/// Databases that are kept ready.
pub const POOL_DEPTH: usize = 8;
/// Most databases that can be kept ready.
pub const POOL_DEPTH_MAX: usize = 256;

/// Server settings for data that nobody will miss. Options of the caller come after them and win.
pub const SETTINGS: [(&str, &str); 21] = [
    ("listen_addresses", ""),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("autovacuum", "off"),
    ("max_worker_processes", "0"),
    ("max_logical_replication_workers", "0"),
    ("jit", "off"),
    ("huge_pages", "off"),
    ("restart_after_crash", "off"),
    ("update_process_title", "off"),
    ("checkpoint_timeout", "1d"),
    ("wal_recycle", "off"),
    ("wal_init_zero", "off"),
    ("shared_buffers", "16MB"),
    ("max_files_per_process", "200"),
    ("dynamic_shared_memory_type", "mmap"),
    // Each new database is a checkpoint: the log is for what went wrong.
    ("log_checkpoints", "off"),
    ("log_timezone", "UTC"),
];

/// Settings that the launcher itself decides.
const RESERVED: [&str; 5] =
    ["listen_addresses", "unix_socket_directories", "port", "data_directory", "restart_after_crash"];

/// How the data directory comes to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Files are copied; everybody sees them.
    #[default]
    Copy,
    /// The server sees the prepared files through an overlay, in namespaces of its own that end with it.
    Namespace,
}

/// Which time the server's wall clock shows to its sessions. Its waits, and everything else, are real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    #[default]
    Real,
    /// That of the sandbox which the process at the other end of a session is in, or the nearest of its parents.
    Follow,
}

/// What a cluster is made from. [`Options::default`] is what the documentation calls the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port, which only names the socket's file.
    pub port: u16,
    pub superuser: String,
    /// The database that statements go to where none is named.
    pub maintenance_db: String,
    pub data_parent: Option<PathBuf>,
    pub socket_parent: Option<PathBuf>,
    pub binaries: Option<Binaries>,
    /// Directories that are looked in for programs before `PATH`.
    pub search: Vec<PathBuf>,
    /// `PATH`, as the front end has read it.
    pub path: Option<String>,
    /// The directory for temporary files, as the front end has read it.
    pub temp_dir: PathBuf,
    pub start_timeout: Duration,
    /// Further server settings; they win over [`SETTINGS`].
    pub settings: Vec<(String, String)>,
    /// Databases that are kept ready; 0 makes each when it is asked for.
    pub pool: usize,
    pub isolation: Isolation,
    pub clock: Clock,
    /// The directory of prepared clusters.
    pub cache: Option<PathBuf>,
    /// What the template database holds, as a key that changes with its content; empty for an empty template.
    pub seed_key: String,
    /// The cluster lasts until it is stopped, and not only as long as the caller.
    pub is_lasting: bool,
    /// The process that the cluster serves, where it is not the caller.
    pub owner: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            port: 5432,
            superuser: "postgres".to_owned(),
            maintenance_db: "postgres".to_owned(),
            data_parent: None,
            socket_parent: None,
            binaries: None,
            search: Vec::new(),
            path: None,
            temp_dir: PathBuf::from("/tmp"),
            start_timeout: Duration::from_secs(60),
            settings: Vec::new(),
            pool: POOL_DEPTH,
            isolation: Isolation::Copy,
            clock: Clock::Real,
            cache: None,
            seed_key: String::new(),
            is_lasting: false,
            owner: None,
        }
    }
}

impl Options {
    /// The defaults, with what the environment says about paths: `PATH`, `TMPDIR`, `HERMETIC_PG_CACHE`. For front ends.
    pub fn from_environment() -> Options {
        Options {
            path: std::env::var("PATH").ok(),
            temp_dir: std::env::temp_dir(),
            cache: std::env::var_os("HERMETIC_PG_CACHE").filter(|path| !path.is_empty()).map(PathBuf::from),
            ..Options::default()
        }
    }

    /// Checks every value, before anything runs.
    ///
    /// # Errors
    /// [`Kind::Invalid`], naming the value and what is accepted.
    pub fn check(&self) -> Result<()> {
        let invalid = |what: String| Err(Error::new(Kind::Invalid, what));
        if self.port == 0 {
            return invalid("port 0 is not accepted: 1 to 65535 are".to_owned());
        }
        for (name, value) in [("superuser", &self.superuser), ("maintenance_db", &self.maintenance_db)] {
            if value.is_empty() || value.len() > crate::name::NAME_LEN_MAX || value.contains(char::is_control) {
                return invalid(format!(
                    "{name} {value:?} is not accepted: 1 to 63 bytes without control characters are"
                ));
            }
        }
        if self.superuser.starts_with("pg_") {
            return invalid(format!("superuser {:?} is not accepted: PostgreSQL reserves pg_", self.superuser));
        }
        if self.start_timeout.is_zero() {
            return invalid("start_timeout 0 is not accepted: a number of seconds above 0 is".to_owned());
        }
        if self.pool > POOL_DEPTH_MAX {
            return invalid(format!("pool {} is not accepted: 0 to {POOL_DEPTH_MAX} are", self.pool));
        }
        if self.clock == Clock::Follow && self.isolation == Isolation::Namespace {
            return invalid(
                "clock \"follow\" is not accepted together with namespaces: in a process namespace of its own the server \
                 does not see who its clients are"
                    .to_owned(),
            );
        }
        for (name, value) in &self.settings {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
            if name.is_empty() || !name.chars().all(is_name) || value.contains('\0') {
                return invalid(format!("server setting {name:?} is not accepted: a name as in postgresql.conf is"));
            }
            if RESERVED.contains(&name.as_str()) {
                return invalid(format!("server setting {name} is not accepted: the launcher decides it"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        let error = options.check().unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
        error.what
    }

    #[test]
    fn defaults_are_accepted_and_mistakes_are_named() {
        Options::default().check().unwrap();
        assert!(refused(|options| options.port = 0).contains("port 0"));
        assert!(refused(|options| options.superuser = "pg_x".to_owned()).contains("pg_x"));
        assert!(refused(|options| options.superuser.clear()).contains("superuser"));
        assert!(refused(|options| options.maintenance_db = "a\n".to_owned()).contains("maintenance_db"));
        assert!(refused(|options| options.start_timeout = Duration::ZERO).contains("start_timeout"));
        assert!(refused(|options| options.pool = 1000).contains("pool 1000"));
        let mixed = |options: &mut Options| {
            options.clock = Clock::Follow;
            options.isolation = Isolation::Namespace;
        };
        assert!(refused(mixed).contains("together with namespaces"));
        let set = |name: &str| vec![(name.to_owned(), "x".to_owned())];
        assert!(refused(|options| options.settings = set("port")).contains("the launcher decides"));
        assert!(refused(|options| options.settings = set("a b")).contains("a b"));
    }
}
