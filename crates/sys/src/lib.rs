//! The machine, as the engine's hooks need it: thread slots, relocation slots, maps, raw clocks.
//!
//! Almost all `unsafe` of the project lives here and in `hook`. Every block names the invariant of `ARCHITECTURE.md` that
//! it relies on. Nothing here decides anything: policy, time and formats are the business of the pure crates.
#![allow(unsafe_code)]

pub mod clock;
pub mod elf;
pub mod futex;
pub mod map;
pub mod objects;
pub mod process;
pub mod slot;
pub mod symbol;
pub mod task;
pub mod tls;
