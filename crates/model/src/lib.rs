//! The vocabulary of determinism: seeds, entropy streams and virtual clocks, as plain values.
//!
//! Nothing here reads a clock, a file or the environment, allocates, or knows about threads: the engine passes in what
//! happened and gets numbers back. That makes every rule here the same on every machine and in every process. The prose
//! contract is `spec/streams.md` and `spec/seeds.md`; other languages are held to it by `spec/vectors/`.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod clock;
pub mod digest;
pub mod instant;
pub mod limits;
pub mod seed;
pub mod stream;
pub mod twister;
