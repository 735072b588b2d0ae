//! Journals: what a recorded run was told, event by event, as bytes.
//!
//! This crate is a pure codec. It owns the format (see `spec/journal.md`) and everything that can be said from a journal
//! alone. It opens no file, maps no memory and asks no clock: the hook library lends a [`Sink`], front ends bring bytes.
//!
//! A journal starts life in the *raw* form, appended to while the test runs by an [`Encoder`] that neither allocates nor
//! does I/O. [`Journal::decode_raw`] reads that form back, also when the process died in the middle of a write.

mod encoder;
mod error;
mod event;
mod journal;
pub mod limits;
pub mod preamble;
mod record;
pub mod schema;
mod varint;

pub use encoder::{Encoder, Full, Sink};
pub use error::Error;
pub use event::{Clock, Event, Reason, Source, WaitKind};
pub use journal::{Events, Journal};

/// Version of the format that this release writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;
