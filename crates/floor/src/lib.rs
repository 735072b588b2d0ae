//! The environment floor: what a test session may see of the machine that it runs on.
//!
//! Everything here decides and nothing acts: the environment as a plan of changes, settings as values or as the list of what is
//! wrong with them, a command as the push that it would make. Files are read through [`Files`], so that the rules can be asked
//! about repositories that do not exist. Setting variables, making folders and refusing calls is left to the front ends.
//!
//! ```
//! use hermetic_floor::credentials::{find, Removal};
//! assert!(matches!(find("GITHUB_TOKEN"), Some(Removal::Exact(_))));
//! assert!(matches!(find("ACME_DEPLOY_TOKEN"), Some(Removal::Pattern(_))));
//! assert!(find("PYTHONPATH").is_none());
//! ```

pub mod credentials;
pub mod environment;
pub mod files;
pub mod git;
pub mod glob;
pub mod limits;
pub mod place;
pub mod process;
pub mod settings;
pub mod shell;
pub mod tables;

pub use files::{Files, Kind};
