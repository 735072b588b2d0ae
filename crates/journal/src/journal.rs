//! A journal that was read: checked once, then walked without errors.

use crate::encoder::{mark, Context};
use crate::event::{Clock, Event};
use crate::limits::{HEAD_BYTES_MAX, JOURNAL_BYTES_MAX};
use crate::preamble::{self, flag, Preamble};
use crate::record::Record;
use crate::schema;
use crate::varint;
use crate::Error;

/// A whole and well-formed journal. It keeps the raw bytes and nothing else; events borrow from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    raw: Vec<u8>,
    head_len: usize,
    events: u64,
}

impl Journal {
    /// Reads the raw form, also of a recording that was cut short: events that were not published are not there.
    pub fn decode_raw(bytes: &[u8]) -> Result<Journal, Error> {
        let preamble = Preamble::decode(bytes)?;
        if preamble.flags & flag::DEFLATED != 0 {
            return Err(Error::corrupt(12, "this is the finished form, not the raw one"));
        }
        let committed = preamble.committed_len;
        if committed == 0 {
            return Err(Error::Empty);
        }
        if committed > JOURNAL_BYTES_MAX as u64 {
            return Err(Error::TooLarge { bytes: committed, limit: JOURNAL_BYTES_MAX as u64 });
        }
        if (bytes.len() as u64) < committed {
            return Err(Error::Truncated { have: bytes.len() as u64, need: committed });
        }
        Journal::from_whole(bytes[..committed as usize].to_vec(), &preamble)
    }

    fn from_whole(raw: Vec<u8>, preamble: &Preamble) -> Result<Journal, Error> {
        let head_len = preamble.head_len as usize;
        if head_len > HEAD_BYTES_MAX || preamble::LEN + head_len > raw.len() {
            return Err(Error::corrupt(24, format!("a head of {head_len} bytes does not fit")));
        }
        if std::str::from_utf8(&raw[preamble::LEN..preamble::LEN + head_len]).is_err() {
            return Err(Error::corrupt(preamble::LEN, "the head is not UTF-8"));
        }
        let mut journal = Journal { raw, head_len, events: 0 };
        let mut events = journal.events();
        let mut count = 0;
        while let Some(step) = events.try_next() {
            step?;
            count += 1;
        }
        journal.events = count;
        Ok(journal)
    }

    /// The raw form, preamble included.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The head as it was written: JSON text, unless something else than a front end wrote it.
    pub fn head_text(&self) -> &str {
        std::str::from_utf8(&self.raw[preamble::LEN..preamble::LEN + self.head_len]).unwrap_or_default()
    }

    /// How many events there are.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// All events, in their order.
    pub fn events(&self) -> Events<'_> {
        Events { raw: &self.raw, at: preamble::LEN + self.head_len, context: Context::START }
    }
}

/// Walks the events of a [`Journal`].
#[derive(Clone, Debug)]
pub struct Events<'a> {
    raw: &'a [u8],
    at: usize,
    context: Context,
}

impl<'a> Events<'a> {
    /// Where the next event begins, in bytes of the raw form.
    pub fn offset(&self) -> usize {
        self.at
    }

    fn try_next(&mut self) -> Option<Result<Event<'a>, Error>> {
        let first = *self.raw.get(self.at)?;
        let mut cursor = Cursor { raw: self.raw, at: self.at + 1 };
        let step = if first & mark::CLOCK != 0 { self.clock(first, &mut cursor) } else { record(first, &mut cursor) };
        let step = step.map_err(|what| Error::corrupt(self.at, what));
        if let Ok(event) = &step {
            self.context.note(event);
            self.at = cursor.at;
        } else {
            self.at = self.raw.len();
        }
        Some(step)
    }

    fn clock(&self, first: u8, cursor: &mut Cursor<'a>) -> Result<Event<'a>, &'static str> {
        let clock = Clock::from_number(u64::from(first >> 4 & 7)).ok_or("an unknown clock")?;
        let thread = if first & mark::THREAD != 0 { cursor.count()? } else { self.context.thread };
        let site = if first & mark::SITE != 0 { cursor.count()? } else { self.context.site };
        let distance = cursor.varint()? as i64;
        let last_ns = self.context.values_ns[clock as usize];
        let value_ns =
            if first & mark::BACK != 0 { last_ns.wrapping_sub(distance) } else { last_ns.wrapping_add(distance) };
        Ok(Event::Clock { thread, site, clock, value_ns, importing: first & mark::IMPORTING != 0 })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        // Every journal was walked once when it was read, so no step can fail now.
        self.try_next()?.ok()
    }
}

fn record<'a>(first: u8, cursor: &mut Cursor<'a>) -> Result<Event<'a>, &'static str> {
    let importing = first & mark::KIND_IMPORTING != 0;
    let kind = schema::kind(first & !mark::KIND_IMPORTING).ok_or("an unknown kind")?;
    if kind.number == schema::number::CLOCK || (importing && !kind.can_import) {
        return Err("marks that this kind cannot have");
    }
    let len = cursor.varint()?;
    let body = cursor.take(len)?;
    let mut inner = Cursor { raw: body, at: 0 };
    let mut record = Record::new(kind.number, importing, &[], &[]);
    let integers = kind.fields.iter().filter(|field| !field.kind.is_blob()).count();
    for value in &mut record.integers[..integers] {
        *value = inner.varint()?;
    }
    let blobs = &mut record.blobs[..kind.fields.len() - integers];
    let mut lens = [0; crate::limits::BLOBS_MAX];
    for len in &mut lens[..blobs.len()] {
        *len = inner.varint()?;
    }
    for (blob, len) in blobs.iter_mut().zip(lens) {
        *blob = inner.take(len)?;
    }
    if inner.at != body.len() {
        return Err("an event that is longer than its fields");
    }
    record.to_event()
}

/// A place in bytes that may end anywhere.
struct Cursor<'a> {
    raw: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn varint(&mut self) -> Result<u64, &'static str> {
        let (value, len) = varint::get(&self.raw[self.at..]).ok_or("a number that is cut off or too large")?;
        self.at += len;
        Ok(value)
    }

    fn count(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.varint()?).map_err(|_| "a count over 32 bits")
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], &'static str> {
        let rest = &self.raw[self.at..];
        let bytes = usize::try_from(len).ok().and_then(|len| rest.get(..len)).ok_or("a length beyond the end")?;
        self.at += bytes.len();
        Ok(bytes)
    }
}
