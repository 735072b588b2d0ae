//! A journal that was read: checked once, then walked without errors.

use std::collections::BTreeMap;
use std::fmt;

use crate::encoder::{mark, Context};
use crate::event::{Clock, Event};
use crate::limits::{HEAD_BYTES_MAX, JOURNAL_BYTES_MAX};
use crate::preamble::{self, flag, Preamble};
use crate::record::Record;
use crate::{form, pack, readable, schema, varint};
use crate::{Error, Form, Head};

/// A whole and well-formed journal. It keeps the raw bytes and nothing else; events borrow from it.
#[derive(Clone, Debug)]
pub struct Journal {
    raw: Vec<u8>,
    version: u32,
    head_len: usize,
    events: u64,
    is_finished: bool,
}

/// A call site, described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    pub file: &'a str,
    pub function: &'a str,
    pub line: u32,
    pub importing: bool,
}

/// `file:line in function`, or `file:line` where there is no function.
impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)?;
        if self.function.is_empty() {
            return Ok(());
        }
        write!(out, " in {}", self.function)
    }
}

/// A thread that took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    pub id: u32,
    pub parent: u32,
    /// Which child of its parent it is, from 0.
    pub ordinal: u32,
    /// Its name across runs; 0 for the first thread.
    pub pedigree: u64,
}

impl Journal {
    /// Reads a journal in any form: raw (also of a recording that was cut short), finished, readable, and each of the
    /// last two inside gzip. Never panics, and takes memory in proportion to the input and
    /// [`JOURNAL_BYTES_MAX`].
    pub fn decode(bytes: &[u8]) -> Result<Journal, Error> {
        if bytes.starts_with(&pack::GZIP_MAGIC) {
            return Journal::decode_unpacked(&pack::gunzip(bytes)?);
        }
        Journal::decode_unpacked(bytes)
    }

    fn decode_unpacked(bytes: &[u8]) -> Result<Journal, Error> {
        if bytes.len() > JOURNAL_BYTES_MAX && !bytes.starts_with(&preamble::MAGIC) {
            return Err(Error::TooLarge { bytes: bytes.len() as u64, limit: JOURNAL_BYTES_MAX as u64 });
        }
        if bytes.trim_ascii_start().starts_with(b"{") {
            return readable::read(bytes).map(|journal| Journal { is_finished: true, ..journal });
        }
        let preamble = Preamble::decode(bytes)?;
        let journal = if preamble.flags & flag::FINISHED != 0 {
            Journal { is_finished: true, ..form::from_binary(bytes, &preamble)? }
        } else {
            Journal::decode_raw(bytes)?
        };
        Head::parse(journal.head_text())?;
        Ok(journal)
    }

    /// Reads the raw form only, also of a recording that was cut short: events that were not published are not there.
    /// For the engine: it needs neither JSON nor inflating, and takes the head as any text.
    pub fn decode_raw(bytes: &[u8]) -> Result<Journal, Error> {
        let len = whole_len(bytes)?;
        Journal::from_raw(bytes[..len].to_vec())
    }

    /// As [`Journal::decode_raw`], of bytes that need not be copied.
    pub(crate) fn from_raw(mut raw: Vec<u8>) -> Result<Journal, Error> {
        raw.truncate(whole_len(&raw)?);
        let Preamble { version, head_len, .. } = Preamble::decode(&raw)?;
        let head_len = head_len as usize;
        if head_len > HEAD_BYTES_MAX || preamble::LEN + head_len > raw.len() {
            return Err(Error::corrupt(24, format!("a head of {head_len} bytes does not fit")));
        }
        if std::str::from_utf8(&raw[preamble::LEN..preamble::LEN + head_len]).is_err() {
            return Err(Error::corrupt(preamble::LEN, "the head is not UTF-8"));
        }
        let mut journal = Journal { raw, version, head_len, events: 0, is_finished: false };
        let mut events = journal.events();
        let mut count = 0;
        while let Some(step) = events.try_next() {
            step?;
            count += 1;
        }
        journal.events = count;
        Ok(journal)
    }

    /// The version of the format that it was written in.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The raw form, preamble included.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The raw form, to keep.
    pub fn to_raw(&self) -> Vec<u8> {
        self.raw.clone()
    }

    /// The journal in a form to keep; see [`crate::finish`].
    pub fn to_form(&self, form: Form) -> Result<Vec<u8>, Error> {
        Head::parse(self.head_text())?;
        form::to_form(self, form)
    }

    /// Whether it was read from a finished form, rather than from the scratch file of a recording.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The head as it was written.
    pub fn head_text(&self) -> &str {
        std::str::from_utf8(&self.raw[preamble::LEN..preamble::LEN + self.head_len]).unwrap_or_default()
    }

    /// The head as values; the default one where [`Journal::decode_raw`] let something else than JSON pass.
    pub fn head(&self) -> Head {
        Head::parse(self.head_text()).unwrap_or_default()
    }

    /// How many events there are.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// All events, in their order.
    pub fn events(&self) -> Events<'_> {
        let last_kind = schema::last_kind(self.version);
        Events { raw: &self.raw, at: preamble::LEN + self.head_len, context: Context::START, last_kind }
    }

    /// The described call sites by their number.
    pub fn sites(&self) -> BTreeMap<u32, Place<'_>> {
        let places = self.events().filter_map(|event| match event {
            Event::Site { id, file, function, line, importing } => {
                Some((id, Place { file, function, line, importing }))
            }
            _ => None,
        });
        places.collect()
    }

    /// The threads in the order of their start; the first is the one that entered the sandbox, announced or not.
    pub fn threads(&self) -> Vec<Thread> {
        let mut threads = vec![Thread { id: 0, parent: 0, ordinal: 0, pedigree: 0 }];
        for event in self.events() {
            match event {
                Event::ThreadStart { thread: 0, parent, ordinal, pedigree } => {
                    threads[0] = Thread { id: 0, parent, ordinal, pedigree };
                }
                Event::ThreadStart { thread, parent, ordinal, pedigree } => {
                    threads.push(Thread { id: thread, parent, ordinal, pedigree });
                }
                _ => {}
            }
        }
        threads
    }

    /// How many events there are of each kind that occurs, by the kind's name, in the order of the schema.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = vec![0; schema::KINDS.len()];
        for event in self.events() {
            counts[usize::from(event.kind_number()) - 1] += 1;
        }
        let named = schema::KINDS.iter().map(|kind| kind.name).zip(counts);
        named.filter(|(_, count)| *count > 0).collect()
    }
}

/// How many bytes of a raw journal are whole, if they are all there.
fn whole_len(bytes: &[u8]) -> Result<usize, Error> {
    let preamble = Preamble::decode(bytes)?;
    if preamble.flags & flag::FINISHED != 0 {
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
    Ok(committed as usize)
}

/// Walks the events of a [`Journal`].
#[derive(Clone, Debug)]
pub struct Events<'a> {
    raw: &'a [u8],
    at: usize,
    context: Context,
    last_kind: u8,
}

impl<'a> Events<'a> {
    /// Where the next event begins, in bytes of the raw form.
    pub fn offset(&self) -> usize {
        self.at
    }

    fn try_next(&mut self) -> Option<Result<Event<'a>, Error>> {
        let first = *self.raw.get(self.at)?;
        let mut cursor = Cursor { raw: self.raw, at: self.at + 1 };
        let step =
            if first & mark::CLOCK != 0 { self.clock(first, &mut cursor) } else { self.record(first, &mut cursor) };
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

impl<'a> Events<'a> {
    fn record(&self, first: u8, cursor: &mut Cursor<'a>) -> Result<Event<'a>, &'static str> {
        if first & !mark::KIND_IMPORTING > self.last_kind {
            return Err("an unknown kind");
        }
        record(first, cursor)
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
