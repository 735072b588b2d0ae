//! The network policy: one grammar of entries for every front end, and one function that decides.
//!
//! [`Policy::decide`] is called inside hooks: it neither allocates nor fails, and costs one pass over the entries. This crate
//! leaves to others how a refusal reaches the program (an errno, an exception), looking names up, and following symbolic
//! links. The prose contract is `spec/policy.md`; `spec/vectors/policy.json` pins it.
//!
//! ```
//! use hermetic_policy::{Policy, Target};
//! let mut policy = Policy::new(true, false);
//! policy.add("api.example.com:443").unwrap();
//! let https = Target::Name { host: b"API.example.com.", port: Some(443) };
//! assert!(policy.decide(&https).is_allowed());
//! let http = Target::Name { host: b"api.example.com", port: Some(80) };
//! assert!(!policy.decide(&http).is_allowed());
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod entry;
mod error;
mod host;
pub mod limits;
mod memory;
mod parse;
mod path;
mod policy;
mod service;
mod stance;
mod target;

pub use entry::{Entry, Network, Scope};
pub use error::{EntryError, Reason};
pub use policy::Policy;
pub use stance::Stance;
pub use target::{By, Target, Verdict};
