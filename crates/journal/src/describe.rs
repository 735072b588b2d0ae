//! One event in words: the label and the value that the timeline and the comparison print.

use crate::event::{Clock, Event, Reason, Source, Wake, GUEST};
use crate::text;

/// Entropy that is written out in full; longer draws are cut to it.
const HEX_BYTES_MAX: usize = 8;

/// Names of a listing that are written out.
const NAMES_MAX: usize = 3;

/// What happened, in one word.
pub(crate) fn label(event: &Event<'_>) -> &'static str {
    match event {
        Event::Clock { clock, .. } => clock.name(),
        Event::Entropy { source: Source::Other, .. } => "entropy",
        Event::Entropy { source, .. } => source.name(),
        Event::Jump { reason: Reason::Sleep, .. } => "slept",
        Event::Jump { reason: Reason::Advance, .. } => "advanced",
        Event::Jump { reason: Reason::Set, .. } => "set",
        Event::Jump { reason: Reason::Deadline, .. } => "jumped",
        Event::Jump { reason: Reason::Real, .. } => "followed",
        Event::ThreadStart { .. } | Event::ThreadEnd { .. } => "thread",
        // Stands out without colour too.
        Event::Refusal { .. } => "REFUSED",
        Event::ChildExit { .. } => "child",
        Event::Wake { how: Wake::TimedOut, .. } => "timed out",
        Event::Wake { how: Wake::Interrupted, .. } => "signal",
        Event::Wake { how, .. } => how.name(),
        other => other.kind_name(),
    }
}

/// The value, on one line.
pub(crate) fn value(event: &Event<'_>) -> String {
    match *event {
        Event::Clock { clock: Clock::Wall, value_ns, .. } => text::date(value_ns),
        Event::Clock { value_ns, .. } => format!("{} s", text::seconds(value_ns)),
        Event::Entropy { bytes, .. } => bytes_text(bytes),
        Event::Wait { kind, duration_ns, .. } if duration_ns < 0 => format!("{}, no limit", kind.name()),
        Event::Wait { kind, duration_ns, .. } => format!("{} {}", kind.name(), text::duration(duration_ns)),
        Event::Looks { count: 1, .. } => "1 call that did not wait".to_string(),
        Event::Looks { count, .. } => format!("{count} calls that did not wait"),
        Event::Found { places, .. } => places_text(places),
        Event::Got { count: 1, .. } => "1 byte".to_string(),
        Event::Got { count, .. } => format!("{count} bytes"),
        Event::Jump { to_ns, .. } => text::date(to_ns),
        Event::ThreadStart { ordinal: GUEST, .. } => "comes from a wider sandbox".to_string(),
        Event::ThreadStart { parent, ordinal, .. } => format!("starts, child {ordinal} of thread {parent}"),
        Event::ThreadEnd { .. } => "ends".to_string(),
        Event::Site { id, file, function, line, .. } => {
            format!("{id} = {}:{line} in {}", text::line(file), text::line(function))
        }
        Event::Listing { names, .. } => names_text(names),
        Event::State { name, bytes, .. } => format!("{}, {} bytes", text::line(name), bytes.len()),
        Event::Refusal { subject, port, .. } => address(subject, port),
        Event::Lookup { host, port, status: 0, answers, .. } => {
            format!("{} is {}", address(host, port), text::line(&answers.lines().collect::<Vec<_>>().join(", ")))
        }
        Event::Lookup { host, port, status, .. } => format!("{} failed ({status})", address(host, port)),
        Event::ChildExit { child, status, .. } => format!("{child} {}", exit_text(status)),
        Event::Note { text, .. } => text::line(text),
        Event::Wake { how, by, .. } => wake_text(how, by),
    }
}

/// Places in a list, from 0.
fn places_text(places: u64) -> String {
    let places: Vec<String> =
        (0..64).filter(|place| places >> place & 1 != 0).map(|place: u32| place.to_string()).collect();
    match places.len() {
        1 => format!("descriptor {} of its list", places[0]),
        _ => format!("descriptors {} of its list", places.join(", ")),
    }
}

/// Why a thread goes on. The time that is up stands in the wait before.
fn wake_text(how: Wake, by: i32) -> String {
    match (how, by) {
        (Wake::Turn, _) => "its turn".to_string(),
        (Wake::Woken, ..0) => "from outside".to_string(),
        (Wake::Woken, by) => format!("by thread {by}"),
        (Wake::TimedOut, _) => "its wait is over".to_string(),
        (Wake::Kernel, _) => "what it waited for came".to_string(),
        (Wake::Interrupted, _) => "its handler ran".to_string(),
        (Wake::Deadlock, _) => "nobody will ever end its wait".to_string(),
    }
}

/// `host:port`, with brackets around an IPv6 address; without a port, the subject alone.
fn address(subject: &str, port: i32) -> String {
    let subject = text::line(subject);
    match (port, subject.contains(':')) {
        (..0, _) => subject,
        (_, true) => format!("[{subject}]:{port}"),
        (_, false) => format!("{subject}:{port}"),
    }
}

fn bytes_text(bytes: &[u8]) -> String {
    match bytes.get(..HEX_BYTES_MAX) {
        Some(start) if bytes.len() > HEX_BYTES_MAX => format!("{}… {} B", text::hex(start), bytes.len()),
        _ => text::hex(bytes),
    }
}

fn names_text(names: &[u8]) -> String {
    if names.is_empty() {
        return "0 names".to_string();
    }
    let count = names.split(|byte| *byte == 0).count();
    let shown: Vec<String> = names.split(|byte| *byte == 0).take(NAMES_MAX).map(text::name).collect();
    let more = if count > NAMES_MAX { ", …" } else { "" };
    format!("{count} name{}: {}{more}", if count == 1 { "" } else { "s" }, shown.join(", "))
}

/// A status as `wait` gives it on Linux.
fn exit_text(status: i32) -> String {
    match status & 0x7f {
        0 => format!("exits with {}", status >> 8 & 0xff),
        signal => format!("killed by signal {signal}"),
    }
}
