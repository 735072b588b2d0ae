//! Journals: what a recorded run was told, event by event, as bytes.
//!
//! This crate is a pure codec. It owns the format (see `spec/journal.md`) and everything that can be said from a journal
//! alone. It opens no file, maps no memory and asks no clock: the hook library lends a [`Sink`], front ends bring bytes.
//!
//! A journal starts life in the *raw* form, appended to while the test runs by an [`Encoder`] that neither allocates nor
//! does I/O. [`finish`] turns it into a file to keep, in one of the forms of [`Form`]; [`Journal::decode`] reads them all
//! back, also a raw one whose process died in the middle of a write. [`timeline`], [`diff()`] and [`verify()`] say what is
//! in a journal; printing is left to the command line.

mod describe;
pub mod diff;
mod encoder;
mod error;
mod event;
mod form;
mod head;
mod journal;
pub mod limits;
mod pack;
pub mod preamble;
mod readable;
mod record;
pub mod schema;
mod text;
pub mod timeline;
mod varint;
pub mod verify;

pub use diff::diff;
pub use encoder::{Encoder, Full, Sink};
pub use error::Error;
pub use event::{Clock, Event, Reason, Source, WaitKind, Wake, GUEST};
pub use form::{finish, Form};
pub use head::Head;
pub use journal::{Events, Journal, Place, Thread};
pub use verify::verify;

/// Version of the format that this release writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 3;

/// The oldest that it reads: journals of version 2 say nothing of the order of threads. Version 1 was the JSON of
/// hermetic-sandbox 0.1.0, which has no call sites and no threads and cannot be replayed here.
pub const FORMAT_VERSION_MIN: u32 = 2;
