//! Writing, while the test runs: no allocation, no I/O, no lock. Called from inside libc hooks.
//!
//! A clock reading is one byte of kind and marks, then only what changed: thread, site, and the distance to the clock's
//! last reading. Every other event is its kind, its length, its integers, the lengths of its blobs, and its blobs.

use crate::event::{Clock, Event};
use crate::limits::{BLOBS_MAX, HEAD_BYTES_MAX, INTEGERS_MAX, JOURNAL_BYTES_MAX, VARINT_BYTES_MAX};
use crate::preamble::{self, Preamble};
use crate::record::Record;
use crate::schema;
use crate::varint;
use crate::FORMAT_VERSION;

/// Where a journal is written: a growing array of bytes, usually a mapped file.
///
/// The writer calls in this order for each event: `reserve`, one or more `write` inside what was reserved, `publish`.
pub trait Sink {
    /// Makes sure that bytes `0..end` can be written, growing if need be. False: no room, nothing changed.
    fn reserve(&mut self, end: usize) -> bool;

    /// Stores `bytes` at `offset`, inside what was reserved.
    fn write(&mut self, offset: usize, bytes: &[u8]);

    /// Stores `len`, little-endian, at [`preamble::COMMITTED_OFFSET`], after everything written before (a release store
    /// where the memory is shared): a reader after a crash then sees whole events only.
    fn publish(&mut self, len: u64);
}

/// A journal in memory.
impl Sink for Vec<u8> {
    fn reserve(&mut self, end: usize) -> bool {
        if self.len() < end {
            self.resize(end, 0);
        }
        true
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn publish(&mut self, len: u64) {
        self.write(preamble::COMMITTED_OFFSET, &len.to_le_bytes());
    }
}

/// There is no room for an event; the journal is whole up to the event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "no room for more events in the journal")
    }
}

impl std::error::Error for Full {}

/// Marks of a clock reading, in its first byte; bits 4 to 6 are the clock.
pub(crate) mod mark {
    /// Sets a clock reading apart from all other kinds.
    pub const CLOCK: u8 = 0x80;
    pub const IMPORTING: u8 = 0x08;
    /// The thread follows: it is not the last event's.
    pub const THREAD: u8 = 0x04;
    /// The site follows: it is not the last event's.
    pub const SITE: u8 = 0x02;
    /// The clock went back.
    pub const BACK: u8 = 0x01;
    /// `importing` of all other kinds.
    pub const KIND_IMPORTING: u8 = 0x40;
}

/// What both sides remember between events, so that only changes are stored.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Of the last event that has one.
    pub thread: u32,
    /// Of the last event that has one.
    pub site: u32,
    /// Last reading of each clock.
    pub values_ns: [i64; Clock::ALL.len()],
}

impl Context {
    pub const START: Context = Context { thread: 0, site: 0, values_ns: [0; Clock::ALL.len()] };

    #[inline]
    pub fn note(&mut self, event: &Event<'_>) {
        if let Some(thread) = event.thread() {
            self.thread = thread;
        }
        if let Some(site) = event.site() {
            self.site = site;
        }
        if let Event::Clock { clock, value_ns, .. } = *event {
            self.values_ns[clock as usize] = value_ns;
        }
    }
}

/// The state of a journal that is being written: plain values, no reference to the sink.
///
/// ```
/// use hermetic_journal::{Clock, Encoder, Event, Journal};
/// let mut bytes = Vec::new();
/// let mut encoder = Encoder::start(&mut bytes, b"{}").unwrap();
/// let reading = Event::Clock { thread: 0, site: 0, clock: Clock::Wall, value_ns: 5, importing: false };
/// encoder.append(&mut bytes, &reading).unwrap();
/// let journal = Journal::decode_raw(&bytes).unwrap();
/// assert_eq!(journal.events().collect::<Vec<_>>(), [reading]);
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    cursor: usize,
    events: u64,
    context: Context,
}

/// The most that the fixed part of one event takes: kind, length, integers, lengths of blobs.
const FIXED_MAX: usize = 1 + VARINT_BYTES_MAX * (1 + INTEGERS_MAX + BLOBS_MAX);

impl Encoder {
    /// Begins a journal: resets the committed length first, so that a scratch file can be used again, then writes the
    /// preamble and `head` (a UTF-8 JSON object; see [`limits`](crate::limits) for its size).
    pub fn start<S: Sink + ?Sized>(sink: &mut S, head: &[u8]) -> Result<Encoder, Full> {
        Encoder::start_version(sink, head, FORMAT_VERSION)
    }

    /// As [`Encoder::start`], of an older version: what was read from one stays one.
    pub(crate) fn start_version<S: Sink + ?Sized>(sink: &mut S, head: &[u8], version: u32) -> Result<Encoder, Full> {
        let cursor = preamble::LEN + head.len();
        if head.len() > HEAD_BYTES_MAX || !sink.reserve(cursor) {
            return Err(Full);
        }
        sink.publish(0);
        let head_len = head.len() as u32;
        let preamble = Preamble { version, flags: 0, committed_len: 0, head_len, crc: 0, events: 0 };
        sink.write(0, &preamble.encode());
        sink.write(preamble::LEN, head);
        sink.publish(cursor as u64);
        Ok(Encoder { cursor, events: 0, context: Context::START })
    }

    /// Appends one event and publishes it. On [`Full`] nothing changed, and a smaller event may still fit.
    #[inline]
    pub fn append<S: Sink + ?Sized>(&mut self, sink: &mut S, event: &Event<'_>) -> Result<(), Full> {
        let mut fixed = [0u8; FIXED_MAX];
        let end = if let Event::Clock { .. } = event {
            let len = self.put_clock(&mut fixed, event);
            self.write(sink, &fixed[..len], &[])?
        } else {
            let record = Record::from_event(event);
            let len = put_record(&mut fixed, &record);
            self.write(sink, &fixed[..len], &record.blobs)?
        };
        sink.publish(end as u64);
        self.cursor = end;
        self.events += 1;
        self.context.note(event);
        Ok(())
    }

    /// Length of the journal so far, in bytes.
    pub fn len(&self) -> u64 {
        self.cursor as u64
    }

    /// Whether no event was written yet.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    fn put_clock(&self, fixed: &mut [u8; FIXED_MAX], event: &Event<'_>) -> usize {
        let Event::Clock { thread, site, clock, value_ns, importing } = *event else { return 0 };
        let last_ns = self.context.values_ns[clock as usize];
        let is_back = value_ns < last_ns;
        // Between any two values lie fewer than 2^64 nanoseconds, so the wrapped difference is exact.
        let distance = if is_back { last_ns.wrapping_sub(value_ns) } else { value_ns.wrapping_sub(last_ns) } as u64;
        let mut first = mark::CLOCK | (clock as u8) << 4;
        let mut len = 1;
        if importing {
            first |= mark::IMPORTING;
        }
        if thread != self.context.thread {
            first |= mark::THREAD;
            len += varint::put(&mut fixed[len..], u64::from(thread));
        }
        if site != self.context.site {
            first |= mark::SITE;
            len += varint::put(&mut fixed[len..], u64::from(site));
        }
        if is_back {
            first |= mark::BACK;
        }
        fixed[0] = first;
        len + varint::put(&mut fixed[len..], distance)
    }

    #[inline]
    fn write<S: Sink + ?Sized>(&self, sink: &mut S, fixed: &[u8], blobs: &[&[u8]]) -> Result<usize, Full> {
        let len = blobs.iter().fold(fixed.len(), |sum, blob| sum.saturating_add(blob.len()));
        let end = self.cursor.saturating_add(len);
        if end > JOURNAL_BYTES_MAX || !sink.reserve(end) {
            return Err(Full);
        }
        sink.write(self.cursor, fixed);
        let mut at = self.cursor + fixed.len();
        for blob in blobs.iter().filter(|blob| !blob.is_empty()) {
            sink.write(at, blob);
            at += blob.len();
        }
        Ok(end)
    }
}

/// Writes kind, length, integers and lengths of blobs; returns how many bytes that took.
fn put_record(fixed: &mut [u8; FIXED_MAX], record: &Record<'_>) -> usize {
    let kind = schema::kind(record.kind).expect("every event has a row in the schema");
    let mut body = [0u8; FIXED_MAX];
    let mut body_len = 0;
    let integers = kind.fields.iter().filter(|field| !field.kind.is_blob()).count();
    for value in &record.integers[..integers] {
        body_len += varint::put(&mut body[body_len..], *value);
    }
    let mut blobs_len = 0;
    for blob in &record.blobs[..kind.fields.len() - integers] {
        body_len += varint::put(&mut body[body_len..], blob.len() as u64);
        blobs_len += blob.len();
    }
    fixed[0] = kind.number | if record.importing { mark::KIND_IMPORTING } else { 0 };
    let len = 1 + varint::put(&mut fixed[1..], (body_len + blobs_len) as u64);
    fixed[len..len + body_len].copy_from_slice(&body[..body_len]);
    len + body_len
}
