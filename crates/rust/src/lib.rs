//! Tests with virtual time, seeded randomness, no network, and journals that replay a failure.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! #[hermetic::test(seed = 42, now = "2024-01-01T00:00:00Z")]
//! fn a_token_expires_after_an_hour() {
//!     let begin = Instant::now();
//!     std::thread::sleep(Duration::from_secs(3600)); // takes no time
//!     assert!(begin.elapsed() >= Duration::from_secs(3600));
//! }
//! ```
//!
//! Nothing is patched and no code under test is changed: what the standard library, tokio or C code ask of libc is answered by
//! Hermetic's engine, which this crate carries inside and opens once per process. Without the attribute, a [`Sandbox`] is
//! entered by hand:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! let sandbox = hermetic::Sandbox::builder().seed(42).now("2024-01-01").enter()?;
//! std::thread::sleep(Duration::from_secs(60));
//! let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs() - 1_704_067_200;
//! assert_eq!(passed, 60);
//! sandbox.leave()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **One at a time.** The clock, the seed and the network policy belong to a process, so sandboxed tests of one process run one
//! after the other, in the order in which they ask. Tests without a sandbox run beside them and see the real world. Under
//! `cargo nextest` each test has a process of its own and all run in parallel.
//!
//! **Not seen**: system calls that are made without libc (feature `smol` turns rustix to libc), static programs, threads that
//! were there before the sandbox. `docs/rust.md` in the repository has the whole story.
//!
//! * [`Builder`] and [`Guard`] enter and leave; [`Handle`] is what can be done inside; [`real`] is the door outside
//! * `settings` checks options; `engine` opens the engine and is the only unsafe file; `queue` keeps the order
//! * `attempt` is one run of a test; `journals` keeps what it was told; `reproduce` says how to run it again

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("hermetic runs on Linux with glibc, on x86-64 and aarch64; other platforms are not supported yet");

mod attempt;
mod engine;
mod environment;
mod error;
mod executor;
mod finding;
mod handle;
mod interrupt;
mod journals;
pub mod option;
mod queue;
pub mod real;
mod recorded;
mod reproduce;
mod sandbox;
mod settings;

pub use error::Error;
pub use finding::{Finding, Kind};
pub use handle::{current, Handle, Jump};
pub use hermetic_macros::{__inside, test};
pub use sandbox::{Builder, Guard, Report, Sandbox};
pub use settings::{Network, When};

/// What the attribute's code calls.
#[doc(hidden)]
pub mod __private {
    pub use crate::attempt::{run, Case};
    pub use crate::executor::block_on;
}
