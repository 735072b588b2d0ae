//! Between an [`Event`] and its row of the schema: the fields as plain integers and byte strings, in the order of storage.

use crate::event::{Clock, Event, Reason, Source, WaitKind, Wake};
use crate::limits::{BLOBS_MAX, INTEGERS_MAX};
use crate::schema::number;
use crate::varint::{unzigzag, zigzag};

/// An event without names: the integers and the blobs of its fields, each in the order of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub kind: u8,
    pub importing: bool,
    pub integers: [u64; INTEGERS_MAX],
    pub blobs: [&'a [u8]; BLOBS_MAX],
}

impl<'a> Record<'a> {
    pub fn new(kind: u8, importing: bool, integers: &[u64], blobs: &[&'a [u8]]) -> Record<'a> {
        let mut record = Record { kind, importing, integers: [0; INTEGERS_MAX], blobs: [&[]; BLOBS_MAX] };
        record.integers[..integers.len()].copy_from_slice(integers);
        record.blobs[..blobs.len()].copy_from_slice(blobs);
        record
    }

    #[rustfmt::skip]
    pub fn from_event(event: &Event<'a>) -> Record<'a> {
        match *event {
            Event::Clock { thread, site, clock, value_ns, importing } =>
                Record::new(number::CLOCK, importing, &[thread.into(), site.into(), clock as u64, zigzag(value_ns)], &[]),
            Event::Entropy { thread, site, source, bytes, importing } =>
                Record::new(number::ENTROPY, importing, &[thread.into(), site.into(), source as u64], &[bytes]),
            Event::Wait { thread, site, kind, duration_ns } =>
                Record::new(number::WAIT, false, &[thread.into(), site.into(), kind as u64, zigzag(duration_ns)], &[]),
            Event::Looks { thread, count } =>
                Record::new(number::LOOKS, false, &[thread.into(), count.into()], &[]),
            Event::Found { thread, places } =>
                Record::new(number::FOUND, false, &[thread.into(), places], &[]),
            Event::Got { thread, site, count } =>
                Record::new(number::GOT, false, &[thread.into(), site.into(), count.into()], &[]),
            Event::Jump { thread, site, to_ns, reason } =>
                Record::new(number::JUMP, false, &[thread.into(), site.into(), zigzag(to_ns), reason as u64], &[]),
            Event::ThreadStart { thread, parent, ordinal, pedigree } =>
                Record::new(number::THREAD_START, false, &[thread.into(), parent.into(), ordinal.into(), pedigree], &[]),
            Event::ThreadEnd { thread } =>
                Record::new(number::THREAD_END, false, &[thread.into()], &[]),
            Event::Site { id, file, function, line, importing } =>
                Record::new(number::SITE, importing, &[id.into(), line.into()], &[file.as_bytes(), function.as_bytes()]),
            Event::Listing { thread, site, names, importing } =>
                Record::new(number::LISTING, importing, &[thread.into(), site.into()], &[names]),
            Event::State { thread, name, bytes } =>
                Record::new(number::STATE, false, &[thread.into()], &[name.as_bytes(), bytes]),
            Event::Refusal { thread, site, subject, port } =>
                Record::new(number::REFUSAL, false, &[thread.into(), site.into(), zigzag(port.into())], &[subject.as_bytes()]),
            Event::Lookup { thread, site, host, port, status, answers } =>
                Record::new(
                    number::LOOKUP, false,
                    &[thread.into(), site.into(), zigzag(port.into()), zigzag(status.into())],
                    &[host.as_bytes(), answers.as_bytes()],
                ),
            Event::ChildExit { thread, site, child, status } =>
                Record::new(number::CHILD_EXIT, false, &[thread.into(), site.into(), child.into(), zigzag(status.into())], &[]),
            Event::Note { thread, text } =>
                Record::new(number::NOTE, false, &[thread.into()], &[text.as_bytes()]),
            Event::Wake { thread, how, by } =>
                Record::new(number::WAKE, false, &[thread.into(), how as u64, zigzag(by.into())], &[]),
        }
    }

    /// The event, or which field is out of its range.
    #[rustfmt::skip]
    pub fn to_event(self) -> Result<Event<'a>, &'static str> {
        let i = &self.integers;
        let (thread, site, importing) = (count(i[0]), count(i[1]), self.importing);
        Ok(match self.kind {
            number::CLOCK => Event::Clock {
                thread: thread?, site: site?, clock: Clock::from_number(i[2]).ok_or("an unknown clock")?,
                value_ns: unzigzag(i[3]), importing,
            },
            number::ENTROPY => Event::Entropy {
                thread: thread?, site: site?, source: Source::from_number(i[2]).ok_or("an unknown source")?,
                bytes: self.blobs[0], importing,
            },
            number::WAIT => Event::Wait {
                thread: thread?, site: site?, kind: WaitKind::from_number(i[2]).ok_or("an unknown kind of wait")?,
                duration_ns: unzigzag(i[3]),
            },
            number::JUMP => Event::Jump {
                thread: thread?, site: site?, to_ns: unzigzag(i[2]),
                reason: Reason::from_number(i[3]).ok_or("an unknown reason")?,
            },
            number::THREAD_START => Event::ThreadStart {
                thread: thread?, parent: site?, ordinal: count(i[2])?, pedigree: i[3],
            },
            number::THREAD_END => Event::ThreadEnd { thread: thread? },
            number::SITE => Event::Site {
                id: thread?, line: site?, file: text(self.blobs[0])?, function: text(self.blobs[1])?, importing,
            },
            number::LISTING => Event::Listing { thread: thread?, site: site?, names: self.blobs[0], importing },
            number::STATE => Event::State { thread: thread?, name: text(self.blobs[0])?, bytes: self.blobs[1] },
            number::REFUSAL => Event::Refusal {
                thread: thread?, site: site?, subject: text(self.blobs[0])?, port: signed(i[2])?,
            },
            number::LOOKUP => Event::Lookup {
                thread: thread?, site: site?, port: signed(i[2])?, status: signed(i[3])?,
                host: text(self.blobs[0])?, answers: text(self.blobs[1])?,
            },
            number::CHILD_EXIT => Event::ChildExit {
                thread: thread?, site: site?, child: count(i[2])?, status: signed(i[3])?,
            },
            number::NOTE => Event::Note { thread: thread?, text: text(self.blobs[0])? },
            number::WAKE => Event::Wake {
                thread: thread?, how: Wake::from_number(i[1]).ok_or("an unknown reason to go on")?, by: signed(i[2])?,
            },
            number::LOOKS => Event::Looks { thread: thread?, count: site? },
            number::GOT => Event::Got { thread: thread?, site: site?, count: count(i[2])? },
            number::FOUND => Event::Found { thread: thread?, places: i[1] },
            _ => return Err("an unknown kind"),
        })
    }
}

fn count(value: u64) -> Result<u32, &'static str> {
    u32::try_from(value).map_err(|_| "a count over 32 bits")
}

fn signed(value: u64) -> Result<i32, &'static str> {
    i32::try_from(unzigzag(value)).map_err(|_| "a signed number over 32 bits")
}

fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")
}
