//! The readable form: JSON, one event a line, complete. Both directions are driven by the schema.
//!
//! Times are integers of nanoseconds; `text` repeats a value for people and is ignored when read. Bytes are hexadecimal.
//! A name in a list that is not UTF-8 is written as NUL and its hexadecimal digits, since no name holds a NUL.

use std::fmt::{self, Write as _};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::{Clock, Event};
use crate::limits::JOURNAL_BYTES_MAX;
use crate::record::Record;
use crate::schema::{self, Field, Kind, Type, KINDS};
use crate::text;
use crate::varint::{unzigzag, zigzag};
use crate::{Encoder, Error, Head, Journal, FORMAT_VERSION, FORMAT_VERSION_MIN};

/// Value of the key `format`.
const FORMAT: &str = "hermetic-journal";

/// Writes a journal whose head is JSON.
pub(crate) fn write(journal: &Journal) -> Result<String, Error> {
    let mut out = String::new();
    let head = journal.head_text().trim();
    let version = journal.version();
    let _ = write!(out, "{{\n\"format\": \"{FORMAT}\",\n\"version\": {version},\n\"head\": {head},\n\"events\": [");
    let mut separator = "\n";
    for event in journal.events() {
        out.push_str(separator);
        write_event(&mut out, &event);
        separator = ",\n";
        if out.len() > JOURNAL_BYTES_MAX {
            return Err(Error::TooLarge { bytes: out.len() as u64, limit: JOURNAL_BYTES_MAX as u64 });
        }
    }
    out.push_str("\n],\n\"counts\": {");
    let counts = journal.counts();
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{}: {count}", quoted(name))).collect();
    let _ = writeln!(out, "{}}}\n}}", counts.join(", "));
    Ok(out)
}

fn write_event(out: &mut String, event: &Event<'_>) {
    let record = Record::from_event(event);
    let kind = schema::kind(record.kind).expect("every event has a row in the schema");
    let _ = write!(out, "{{\"event\": {}", quoted(kind.name));
    let (mut integers, mut blobs) = (record.integers.iter(), record.blobs.iter());
    for field in kind.fields {
        let _ = write!(out, ", {}: ", quoted(field.name));
        if field.kind.is_blob() {
            write_blob(out, field.kind, blobs.next().copied().unwrap_or_default());
        } else {
            write_integer(out, field.kind, integers.next().copied().unwrap_or_default());
        }
    }
    if record.importing {
        out.push_str(", \"importing\": true");
    }
    if let Some(text) = readable_time(event) {
        let _ = write!(out, ", \"text\": {}", quoted(&text));
    }
    out.push('}');
}

fn write_integer(out: &mut String, kind: Type, value: u64) {
    let _ = match kind {
        Type::Signed | Type::Nanoseconds => write!(out, "{}", unzigzag(value)),
        Type::Identity => write!(out, "\"{value:016x}\""),
        Type::Name(names) => write!(out, "{}", quoted(names[value as usize])),
        _ => write!(out, "{value}"),
    };
}

fn write_blob(out: &mut String, kind: Type, bytes: &[u8]) {
    match kind {
        Type::Bytes => out.push_str(&quoted(&text::hex(bytes))),
        Type::Names if bytes.is_empty() => out.push_str("[]"),
        Type::Names => {
            let names: Vec<String> = bytes.split(|byte| *byte == 0).map(|name| quoted(&name_text(name))).collect();
            let _ = write!(out, "[{}]", names.join(", "));
        }
        _ => out.push_str(&quoted(std::str::from_utf8(bytes).unwrap_or_default())),
    }
}

fn name_text(name: &[u8]) -> String {
    std::str::from_utf8(name).map_or_else(|_| format!("\0{}", text::hex(name)), str::to_string)
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every text has a JSON form")
}

fn readable_time(event: &Event<'_>) -> Option<String> {
    match *event {
        Event::Clock { clock: Clock::Wall, value_ns, .. } => Some(text::date(value_ns)),
        Event::Clock { value_ns, .. } => Some(format!("{} s", text::seconds(value_ns))),
        Event::Wait { duration_ns, .. } if duration_ns < 0 => Some("no limit".to_string()),
        Event::Wait { duration_ns, .. } => Some(text::duration(duration_ns)),
        Event::Jump { to_ns, .. } => Some(text::date(to_ns)),
        _ => None,
    }
}

/// Reads what [`write()`] wrote. Events go straight into the raw form, so memory stays in proportion to the input.
pub(crate) fn read(bytes: &[u8]) -> Result<Journal, Error> {
    let mut reader = Reader::default();
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let result = Document(&mut reader).deserialize(&mut source).and_then(|()| source.end());
    if let Some(error) = reader.error {
        return Err(error);
    }
    if let Err(error) = result {
        return Err(reader.describe(&error, bytes.len()));
    }
    if !reader.is_ours {
        return Err(Error::Foreign { what: "JSON without the format of one" });
    }
    if !reader.is_complete {
        let what = "no head or no list of events".to_string();
        return Err(Error::Unreadable { line: bytes.iter().filter(|byte| **byte == b'\n').count() as u64, what });
    }
    Journal::from_raw(reader.raw)
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    raw: Vec<u8>,
    encoder: Option<Encoder>,
    is_ours: bool,
    /// 0 before it was read.
    version: u32,
    is_complete: bool,
    /// Why reading stopped, where JSON itself is not to blame.
    error: Option<Error>,
}

impl Reader {
    fn describe(&self, error: &serde_json::Error, have: usize) -> Error {
        if !self.is_ours {
            return Error::Foreign { what: "neither binary nor JSON of one" };
        }
        if error.is_eof() {
            return Error::Truncated { have: have as u64, need: have as u64 + 1 };
        }
        let text = error.to_string();
        // The place is told by `line`.
        let what = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_string();
        Error::Unreadable { line: error.line() as u64, what }
    }

    fn stop<E: de::Error>(&mut self, error: Error) -> E {
        self.error = Some(error);
        E::custom("stopped")
    }

    fn check_version(&mut self, version: u64) -> Result<(), Error> {
        self.version = match version {
            0 => return Err(Error::Foreign { what: "format version 0 was never used" }),
            _ if version < u64::from(FORMAT_VERSION_MIN) => return Err(Error::Older),
            _ if version <= u64::from(FORMAT_VERSION) => version as u32,
            _ => return Err(Error::Newer { found: version, supported: FORMAT_VERSION }),
        };
        Ok(())
    }
}

/// The outermost object.
struct Document<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reader = self.0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => {
                    if map.next_value::<String>()? != FORMAT {
                        return Err(reader.stop(Error::Foreign { what: "JSON of another format" }));
                    }
                    reader.is_ours = true;
                }
                "version" if reader.is_ours => {
                    let version = map.next_value()?;
                    reader.check_version(version).map_err(|error| reader.stop(error))?;
                }
                "head" if reader.version != 0 && reader.encoder.is_none() => {
                    let head: &RawValue = map.next_value()?;
                    Head::read(head.get()).map_err(de::Error::custom)?;
                    let encoder = Encoder::start_version(&mut reader.raw, head.get().as_bytes(), reader.version);
                    reader.encoder = Some(encoder.map_err(de::Error::custom)?);
                }
                "events" if reader.encoder.is_some() && !reader.is_complete => map.next_value_seed(List(reader))?,
                "head" | "events" | "version" if reader.is_ours => {
                    return Err(de::Error::custom("format, version, head and events must come once and in this order"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The list of events.
struct List<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let reader = self.0;
        let Some(encoder) = &mut reader.encoder else { return Err(de::Error::custom("no head")) };
        while let Some(parts) = list.next_element::<Parts>()? {
            let event = parts.record().to_event().map_err(de::Error::custom)?;
            encoder.append(&mut reader.raw, &event).map_err(de::Error::custom)?;
        }
        reader.is_complete = true;
        Ok(())
    }
}

/// One value of an event. Nested values other than a list of texts are refused, which bounds memory.
#[derive(Debug, PartialEq)]
enum Scalar {
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Scalar, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = Scalar;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number, a text, true, false or a list of texts")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                i64::try_from(value).map(Scalar::Number).map_err(|_| E::custom("a number over 63 bits"))
            }

            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Scalar::List(items))
            }
        }
        source.deserialize_any(Value)
    }
}

/// The fields of one event in the order of the schema, owned.
struct Parts {
    kind: &'static Kind,
    importing: bool,
    integers: Vec<u64>,
    blobs: Vec<Vec<u8>>,
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Parts, D::Error> {
        struct Line;
        impl<'de> Visitor<'de> for Line {
            type Value = Parts;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if fields.len() == schema::FIELDS_MAX {
                        return Err(de::Error::custom("an event with too many fields"));
                    }
                    fields.push(entry);
                }
                // Checked in here, while the parser still stands in the event's line.
                Parts::new(fields).map_err(de::Error::custom)
            }
        }
        source.deserialize_map(Line)
    }
}

impl Parts {
    fn new(mut fields: Vec<(String, Scalar)>) -> Result<Parts, String> {
        let mut take = |name: &str| {
            let at = fields.iter().position(|(key, _)| key == name)?;
            Some(fields.swap_remove(at).1)
        };
        let Some(Scalar::Text(name)) = take("event") else { return Err("an event without a kind".to_string()) };
        let kind =
            KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("unknown kind of event {name:?}"))?;
        let importing = match take("importing") {
            None | Some(Scalar::Bool(false)) => false,
            Some(Scalar::Bool(true)) if kind.can_import => true,
            Some(other) => return Err(format!("{name} cannot have importing = {other:?}")),
        };
        // For people only: the value itself stands in another field.
        take("text");
        let mut parts = Parts { kind, importing, integers: Vec::new(), blobs: Vec::new() };
        for field in kind.fields {
            let value = take(field.name).ok_or_else(|| format!("{name} without {}", field.name))?;
            parts.add(field, &value).ok_or_else(|| format!("{name} with {} = {value:?}", field.name))?;
        }
        match fields.first() {
            Some((key, _)) => Err(format!("{name} with an unknown field {key:?}")),
            None => parts.record().to_event().map(|_| ()).map_err(str::to_string).map(|()| parts),
        }
    }

    /// Adds a value, unless it does not fit its type.
    fn add(&mut self, field: &Field, value: &Scalar) -> Option<()> {
        match (field.kind, value) {
            (Type::Count, Scalar::Number(number)) => self.integers.push(u32::try_from(*number).ok()?.into()),
            (Type::Signed | Type::Nanoseconds, Scalar::Number(number)) => self.integers.push(zigzag(*number)),
            (Type::Identity, Scalar::Text(digits)) => self.integers.push(u64::from_str_radix(digits, 16).ok()?),
            (Type::Name(names), Scalar::Text(name)) => {
                self.integers.push(names.iter().position(|known| known == name)? as u64);
            }
            (Type::Text, Scalar::Text(text)) => self.blobs.push(text.as_bytes().to_vec()),
            (Type::Bytes, Scalar::Text(digits)) => self.blobs.push(text::unhex(digits)?),
            (Type::Names, Scalar::List(names)) => self.blobs.push(join_names(names)?),
            _ => return None,
        }
        Some(())
    }

    fn record(&self) -> Record<'_> {
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        Record::new(self.kind.number, self.importing, &self.integers, &blobs)
    }
}

fn join_names(names: &[String]) -> Option<Vec<u8>> {
    let names: Option<Vec<Vec<u8>>> = names
        .iter()
        .map(|name| match name.strip_prefix('\0') {
            Some(digits) => text::unhex(digits),
            None => Some(name.as_bytes().to_vec()),
        })
        .collect();
    Some(names?.join(&0))
}
