//! The forms of a journal that is kept, and how a raw one becomes one of them.

use std::path::Path;

use crate::limits::JOURNAL_BYTES_MAX;
use crate::pack;
use crate::preamble::{self, flag, Preamble};
use crate::readable;
use crate::{Error, Head, Journal};

/// How a finished journal is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// JSON, one event a line, instead of the packed binary form.
    pub readable: bool,
    /// Gzip around it.
    pub gzip: bool,
}

impl Form {
    /// The default: small, and nothing else.
    pub const BINARY: Form = Form { readable: false, gzip: false };
    /// For people and other programs.
    pub const READABLE: Form = Form { readable: true, gzip: false };

    /// The form that a file's name asks for: `.json` is readable, `.gz` on either compresses, all else is binary.
    ///
    /// ```
    /// use hermetic_journal::Form;
    /// assert_eq!(Form::from_path("a/test.journal".as_ref()), Form::BINARY);
    /// assert_eq!(Form::from_path("a/test.JSON.gz".as_ref()), Form { readable: true, gzip: true });
    /// ```
    pub fn from_path(path: &Path) -> Form {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (stem, gzip) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_str(), false),
        };
        Form { readable: stem.ends_with(".json"), gzip }
    }
}

/// Finishes a journal: raw bytes (also of a recording that was cut short) become what is worth keeping. The same input
/// always gives the same bytes.
///
/// Fails as [`Journal::decode_raw`], when the head is not a JSON object, and with [`Error::TooLarge`] when the readable
/// form would exceed its limit.
///
/// ```
/// use hermetic_journal::{finish, Encoder, Form, Journal};
/// let mut raw = Vec::new();
/// Encoder::start(&mut raw, br#"{"test": "test_a.py::test_x"}"#).unwrap();
/// let kept = finish(&raw, Form::BINARY).unwrap();
/// assert_eq!(Journal::decode(&kept).unwrap().head().test.as_deref(), Some("test_a.py::test_x"));
/// ```
pub fn finish(raw: &[u8], form: Form) -> Result<Vec<u8>, Error> {
    let journal = Journal::decode_raw(raw)?;
    Head::parse(journal.head_text())?;
    to_form(&journal, form)
}

pub(crate) fn to_form(journal: &Journal, form: Form) -> Result<Vec<u8>, Error> {
    let bytes = if form.readable { readable::write(journal)?.into_bytes() } else { to_binary(journal) };
    if bytes.len() > JOURNAL_BYTES_MAX {
        return Err(Error::TooLarge { bytes: bytes.len() as u64, limit: JOURNAL_BYTES_MAX as u64 });
    }
    Ok(if form.gzip { pack::gzip(&bytes) } else { bytes })
}

fn to_binary(journal: &Journal) -> Vec<u8> {
    let body = &journal.raw()[preamble::LEN..];
    let preamble = Preamble {
        version: journal.version(),
        flags: flag::FINISHED,
        committed_len: journal.raw().len() as u64,
        head_len: journal.head_text().len() as u32,
        crc: pack::crc32(body),
        events: journal.event_count(),
    };
    let mut bytes = preamble.encode().to_vec();
    bytes.extend(pack::deflate(body));
    bytes
}

/// Unpacks the finished binary form into the raw one, and checks it.
pub(crate) fn from_binary(bytes: &[u8], preamble: &Preamble) -> Result<Journal, Error> {
    let len = preamble.committed_len;
    if len > JOURNAL_BYTES_MAX as u64 {
        return Err(Error::TooLarge { bytes: len, limit: JOURNAL_BYTES_MAX as u64 });
    }
    let Some(body_len) = (len as usize).checked_sub(preamble::LEN) else {
        return Err(Error::corrupt(preamble::COMMITTED_OFFSET, format!("a length of {len} bytes is too short")));
    };
    let mut raw = Preamble { flags: 0, crc: 0, events: 0, ..*preamble }.encode().to_vec();
    pack::inflate(&bytes[preamble::LEN..], body_len, preamble::LEN, &mut raw)?;
    let crc = pack::crc32(&raw[preamble::LEN..]);
    if crc != preamble.crc {
        let what = format!("the checksum is {crc:08x} and should be {:08x}", preamble.crc);
        return Err(Error::corrupt(28, what));
    }
    let journal = Journal::from_raw(raw)?;
    if journal.event_count() != preamble.events {
        let what = format!("{} events where {} were promised", journal.event_count(), preamble.events);
        return Err(Error::corrupt(32, what));
    }
    Ok(journal)
}
