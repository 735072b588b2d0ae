//! The engine: what a hooked call is told, decided from the state of the sandbox alone.
//!
//! No system call, no `unsafe`, no global: the hook library owns the one [`Sandbox`] per level and each thread's
//! [`Thread`], asks here, and carries the answer back to the program. What is real is passed in by the caller, as a value or
//! as a closure that is only called where the answer must be real.
//!
//! * [`sandbox`] has entering, leaving, the fields that threads share
//! * [`time`] has clocks, waits, the spin detector
//! * [`tentative`] has the readings that may be the interpreter's own
//! * `chance` has what a thread does by chance, as in a garbage collection
//! * [`entropy`] has random bytes and the order of listings
//! * [`scheduler`]: who runs, who waits, when time jumps; [`order`] has what a journal says of that
//! * `steps`: after how many steps a thread offers its turn
//! * [`waits`]: what journals have to do with waits
//! * [`network`] (refusals)
//! * [`recorder`] and [`replayer`] are the two users of a journal
//! * [`floor`] is the network policy under all sandboxes; [`floor_file`] is one as text, for started programs
//! * [`finding`] is what the end of a test must know
//!
//! Nothing here allocates in a call that a hook makes, with two exceptions, each at most once per call site or allowed
//! name: describing a new call site, and remembering the address of an allowed name.

mod chance;
pub mod entropy;
pub mod finding;
pub mod floor;
pub mod floor_file;
pub mod host;
pub mod network;
pub mod order;
pub mod recorder;
pub mod replayer;
pub mod sandbox;
pub mod scheduler;
mod sites;
mod steps;
pub mod tentative;
pub mod thread;
pub mod time;
pub mod waits;

pub use finding::Findings;
pub use host::Host;
pub use sandbox::{EnterError, Sandbox, Settings};
pub use thread::{Class, Identity, Seat, Thread};
