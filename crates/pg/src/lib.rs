//! Throwaway PostgreSQL: a cluster in a few dozen milliseconds, a database at once, nothing left behind.
//!
//! | file | what it is for |
//! |---|---|
//! | `binaries`, `version` | which server there is |
//! | `options`, `place`, `identity`, `plan` | what is asked for, and what is decided before anything runs |
//! | `cache`, `archive`, `checksum`, `template` | prepared clusters: made once, unpacked from then on |
//! | `cluster` | the client: starts a supervisor, asks it for databases, runs statements |
//! | `supervisor`, `server`, `stage`, `desk`, `requests` | the process that owns the server, outlives its owner and cleans up |
//! | `registry` | which runs there are, and sweeping what a dead one left |
//! | `wire`, `message`, `socket` | the protocols: PostgreSQL's, and our own between client and supervisor |
//!
//! Front ends convert and name errors; they decide nothing. Clients read no clock and wait without time-outs, so a virtual
//! clock in their process changes nothing here: all that takes time is the supervisor's, a program of its own.

mod archive;
mod binaries;
mod cache;
mod checksum;
mod cluster;
mod desk;
mod error;
mod helper;
mod identity;
pub mod message;
mod name;
mod options;
mod place;
mod plan;
mod registry;
mod requests;
mod server;
mod socket;
mod stage;
mod supervisor;
mod template;
mod version;
pub mod wire;

use std::ffi::OsString;

pub use binaries::{find_among, find_binaries, Binaries, REQUIRED, SEARCH_DIRS};
pub use cache::key;
pub use checksum::checksum;
pub use cluster::{url, Cluster, Info};
pub use error::{Error, Kind, Result, KINDS};
pub use helper::Helper;
pub use name::{check_name, generate_name, NAME_LEN_MAX};
pub use options::{Clock, Isolation, Options, POOL_DEPTH, POOL_DEPTH_MAX, SETTINGS};
pub use place::{check_socket_dir, socket_path_for, DATA_PARENTS, SOCKET_PARENTS, SUN_PATH_MAX};
pub use registry::Run;
pub use template::{Seed, Template};
pub use version::{Version, MAJOR_OLDEST};

/// The program that supervisors run: `supervise`, or `serve …`. Returns the exit code, or nothing for other arguments.
/// `words` are the arguments that this program was started with before these, to start it again.
pub fn main(words: &[&str], arguments: &[OsString]) -> Option<i32> {
    if let Ok(program) = std::env::current_exe() {
        Helper { program, words: words.iter().map(|word| (*word).to_owned()).collect() }.install();
    }
    match arguments.split_first() {
        Some((word, [])) if word == "supervise" => Some(i32::from(supervisor::run().is_err())),
        Some((word, rest)) if word == "serve" => {
            // Into the server's log, which is where its own words go.
            eprintln!("hermetic-pg: {}", stage::run(rest));
            Some(1)
        }
        _ => None,
    }
}

/// The living runs of this user.
///
/// # Errors
/// [`Kind::Unavailable`] where the list cannot be read.
pub fn runs() -> Result<Vec<Run>> {
    registry::living(&registry::directory()?)
}

/// Removes what dead runs of this user left; returns their names.
///
/// # Errors
/// [`Kind::Unavailable`] where the list cannot be read.
pub fn sweep() -> Result<Vec<String>> {
    registry::sweep(&registry::directory()?)
}
