//! What goes in comes out, in every form; what is damaged is refused, and nothing panics.

use hermetic_journal::{
    diff, finish, verify, Clock, Encoder, Error, Event, Form, Full, Journal, Reason, Sink, Source, WaitKind, Wake,
};
use proptest::prelude::*;

const FORMS: [Form; 4] = [
    Form { readable: false, gzip: false },
    Form { readable: false, gzip: true },
    Form { readable: true, gzip: false },
    Form { readable: true, gzip: true },
];

const HEAD: &str = r#"{"test": "test_a.py::test_x[\"ü\"]", "config": {"seed": "123456789012345678901234567890"}, "new": [1, {"a": null}]}"#;

/// The parts of any event, owned.
type Parts = (u8, u32, u32, i64, i32, Vec<u8>, String, bool);

fn parts() -> impl Strategy<Value = Parts> {
    let number = prop_oneof![0u32..5, any::<u32>()];
    let value = prop_oneof![any::<i64>(), -1000i64..1000, Just(i64::MIN), Just(i64::MAX)];
    let bytes = prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..40);
    (0u8..17, number.clone(), number, value, any::<i32>(), bytes, ".{0,20}", any::<bool>())
}

fn event((kind, thread, site, value, small, bytes, text, importing): &Parts) -> Event<'_> {
    let (thread, site, importing) = (*thread, *site, *importing);
    let pick = *value as usize;
    match kind {
        0 => Event::Clock { thread, site, clock: Clock::ALL[pick % Clock::ALL.len()], value_ns: *value, importing },
        1 => Event::Entropy { thread, site, source: Source::ALL[pick % Source::ALL.len()], bytes, importing },
        2 => Event::Wait { thread, site, kind: WaitKind::ALL[pick % WaitKind::ALL.len()], duration_ns: *value },
        3 => Event::Jump { thread, site, to_ns: *value, reason: Reason::ALL[pick % Reason::ALL.len()] },
        4 => Event::ThreadStart { thread, parent: site, ordinal: thread, pedigree: *value as u64 },
        5 => Event::ThreadEnd { thread },
        6 => Event::Site { id: thread, file: text, function: text, line: site, importing },
        7 => Event::Listing { thread, site, names: bytes, importing },
        8 => Event::State { thread, name: text, bytes },
        9 => Event::Refusal { thread, site, subject: text, port: *small },
        10 => Event::Lookup { thread, site, host: text, port: *small, status: *small, answers: text },
        11 => Event::ChildExit { thread, site, child: thread, status: *small },
        12 => Event::Wake { thread, how: Wake::ALL[pick % Wake::ALL.len()], by: *small },
        13 => Event::Looks { thread, count: site },
        14 => Event::Found { thread, places: *value as u64 },
        15 => Event::Got { thread, site, count: *small as u32 },
        _ => Event::Note { thread, text },
    }
}

fn encode(events: &[Event<'_>]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut encoder = Encoder::start(&mut raw, HEAD.as_bytes()).unwrap();
    for event in events {
        encoder.append(&mut raw, event).unwrap();
    }
    assert_eq!(encoder.len(), raw.len() as u64);
    assert_eq!(encoder.events(), events.len() as u64);
    raw
}

proptest! {
    #[test]
    fn events_come_back_from_every_form(parts in prop::collection::vec(parts(), 0..30)) {
        let events: Vec<Event<'_>> = parts.iter().map(event).collect();
        let raw = encode(&events);
        for form in FORMS {
            let kept = finish(&raw, form).unwrap();
            let journal = Journal::decode(&kept).unwrap();
            prop_assert_eq!(&journal.events().collect::<Vec<_>>(), &events);
            prop_assert_eq!(journal.raw(), &raw[..]);
            prop_assert_eq!(&kept, &finish(&journal.to_raw(), form).unwrap(), "the same bytes each time");
            prop_assert!(journal.is_finished());
            prop_assert!(diff(&journal, &Journal::decode(&raw).unwrap()).is_same());
        }
    }

    #[test]
    fn bytes_of_any_kind_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Journal::decode(&bytes);
    }

    #[test]
    fn damaged_journals_are_answered(
        parts in prop::collection::vec(parts(), 1..12), at in any::<prop::sample::Index>(), flip in 1u8..=255,
    ) {
        let events: Vec<Event<'_>> = parts.iter().map(event).collect();
        let raw = encode(&events);
        for form in FORMS {
            let mut kept = finish(&raw, form).unwrap();
            let at = at.index(kept.len());
            kept[at] ^= flip;
            if let Ok(journal) = Journal::decode(&kept) {
                verify(&journal);
            }
        }
        let mut damaged = raw.clone();
        let at = at.index(raw.len());
        damaged[at] ^= flip;
        if let Ok(journal) = Journal::decode(&damaged) {
            let mut page = Vec::new();
            hermetic_journal::timeline::write(&journal, Default::default(), &mut page).unwrap();
            diff(&journal, &Journal::decode(&raw).unwrap());
        }
    }
}

fn sample() -> Vec<Event<'static>> {
    vec![
        Event::Site { id: 1, file: "test_a.py", function: "test_x", line: 3, importing: false },
        Event::Clock { thread: 0, site: 1, clock: Clock::Wall, value_ns: 1_577_836_800_000_000_000, importing: false },
        Event::Entropy { thread: 0, site: 1, source: Source::Device, bytes: b"0123456789abcdef", importing: true },
        Event::Listing { thread: 0, site: 1, names: b"a\0\xff\0", importing: false },
        Event::Note { thread: 0, text: "done" },
    ]
}

#[test]
fn a_finished_file_cut_anywhere_is_cut_off() {
    let raw = encode(&sample());
    for form in FORMS {
        let kept = finish(&raw, form).unwrap();
        for len in 0..kept.len() {
            let is_end_of_text = form == Form::READABLE && kept[len..] == *b"\n";
            match Journal::decode(&kept[..len]) {
                Err(Error::Truncated { .. }) => {}
                Err(Error::Empty) if len == 0 => {}
                // Before its format is known, text is just text.
                Err(Error::Foreign { .. }) if len < 30 => {}
                Ok(_) if is_end_of_text => {}
                other => panic!("{form:?} cut to {len} of {}: {other:?}", kept.len()),
            }
        }
    }
}

#[test]
fn a_raw_file_cut_anywhere_is_cut_off() {
    let raw = encode(&sample());
    for len in 1..raw.len() {
        assert!(matches!(Journal::decode(&raw[..len]), Err(Error::Truncated { .. })), "cut to {len}");
    }
    assert_eq!(Journal::decode(&[]).unwrap_err(), Error::Empty);
}

/// A sink that dies after a number of stores, as a killed process does.
struct Dying {
    bytes: Vec<u8>,
    stores_left: usize,
}

impl Sink for Dying {
    fn reserve(&mut self, end: usize) -> bool {
        self.bytes.resize(self.bytes.len().max(end), 0);
        true
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.stores_left > 0 {
                self.stores_left -= 1;
                self.bytes[offset + at] = *byte;
            }
        }
    }

    fn publish(&mut self, len: u64) {
        // One aligned store: it happens whole or not at all.
        if self.stores_left > 0 {
            self.stores_left -= 1;
            self.bytes[16..24].copy_from_slice(&len.to_le_bytes());
        }
    }
}

#[test]
fn a_writer_killed_after_any_store_leaves_whole_events() {
    let events = sample();
    let mut most = 0;
    // The scratch file holds the journal of the test before.
    let before = encode(&[Event::Note { thread: 0, text: "an earlier test, whose journal is longer" }; 20]);
    for stores_left in 0..600 {
        let mut sink = Dying { bytes: before.clone(), stores_left };
        let mut encoder = Encoder::start(&mut sink, HEAD.as_bytes()).unwrap();
        for event in &events {
            encoder.append(&mut sink, event).unwrap();
        }
        match Journal::decode(&sink.bytes) {
            Ok(journal) if stores_left == 0 => assert_eq!(journal.raw(), before),
            Ok(journal) => {
                let read: Vec<_> = journal.events().collect();
                assert_eq!(read, events[..read.len()]);
                assert!(read.len() >= most);
                most = read.len();
            }
            Err(error) => assert_eq!(error, Error::Empty, "after {stores_left} stores"),
        }
    }
    assert_eq!(most, events.len());
}

#[test]
fn a_full_sink_keeps_what_it_has() {
    struct Small(Vec<u8>);
    impl Sink for Small {
        fn reserve(&mut self, end: usize) -> bool {
            end <= 256 && Sink::reserve(&mut self.0, end)
        }
        fn write(&mut self, offset: usize, bytes: &[u8]) {
            self.0.write(offset, bytes);
        }
        fn publish(&mut self, len: u64) {
            self.0.publish(len);
        }
    }
    let mut sink = Small(Vec::new());
    let mut encoder = Encoder::start(&mut sink, b"{}").unwrap();
    let note = Event::Note { thread: 0, text: "small" };
    encoder.append(&mut sink, &note).unwrap();
    let large = Event::State { thread: 0, name: "random", bytes: &[7; 2500] };
    assert_eq!(encoder.append(&mut sink, &large), Err(Full));
    encoder.append(&mut sink, &note).unwrap();
    assert_eq!(Journal::decode(&sink.0).unwrap().events().collect::<Vec<_>>(), [note, note]);
}

#[test]
fn a_journal_of_the_version_before_stays_one() {
    let note = Event::Note { thread: 0, text: "old" };
    let mut raw = encode(&[note]);
    raw[8] = 2;
    for form in FORMS {
        let journal = Journal::decode(&finish(&raw, form).unwrap()).unwrap();
        assert_eq!((journal.version(), journal.raw()), (2, &raw[..]));
        assert_eq!(journal.events().collect::<Vec<_>>(), [note]);
    }
    assert_eq!(Journal::decode(&encode(&[note])).unwrap().version(), 3);
    let mut raw = encode(&[Event::Wake { thread: 0, how: Wake::Woken, by: -1 }]);
    raw[8] = 2;
    assert!(matches!(Journal::decode(&raw), Err(Error::Corrupt { .. })), "version 2 had no such event");
}

#[test]
fn other_files_are_named_for_what_they_are() {
    let decode = |bytes: &[u8]| Journal::decode(bytes).unwrap_err();
    assert!(matches!(decode(b"PK\x03\x04 a zip file"), Error::Foreign { .. }));
    assert!(matches!(decode(b"{\"a\": 1}"), Error::Foreign { .. }));
    assert!(matches!(decode(b"{oops"), Error::Foreign { .. }));
    assert!(matches!(decode(b"[1]"), Error::Foreign { .. }));
    assert_eq!(decode(br#"{"format":"hermetic-journal","version":1,"events":{"wall":[1.5]}}"#), Error::Older);
    let newer = decode(br#"{"format":"hermetic-journal","version":4,"head":7}"#);
    assert_eq!(newer, Error::Newer { found: 4, supported: 3 });
    assert_eq!(newer.to_string(), "journal format 4 is newer than this release reads (up to 3)");
    let mut raw = encode(&[]);
    raw[8] = 9;
    assert_eq!(decode(&raw), Error::Newer { found: 9, supported: 3 });
    assert_eq!(decode(&[0; 4096]), Error::Empty, "a scratch file that was never written");
}

#[test]
fn damage_in_readable_journals_is_named_by_its_line() {
    let text = String::from_utf8(finish(&encode(&sample()), Form::READABLE).unwrap()).unwrap();
    for (from, to, says) in [
        ("\"wall\"", "\"sundial\"", "clock with clock = Text(\"sundial\")"),
        ("\"event\": \"clock\"", "\"event\": \"clack\"", "unknown kind of event \"clack\""),
        ("\"value_ns\": 1577836800000000000", "\"value_ns\": 1.5", "floating point"),
        ("\"site\": 1, \"clock\"", "\"clock\"", "clock without site"),
        ("\"text\": \"2020-01-01 00:00:00\"", "\"extra\": 1", "an unknown field \"extra\""),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        match Journal::decode(text.replacen(from, to, 1).as_bytes()) {
            Err(Error::Unreadable { line: 7, what }) => assert!(what.contains(says), "{what}"),
            other => panic!("{from}: {other:?}"),
        }
    }
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    let mut kept = finish(&encode(&sample()), Form::BINARY).unwrap();
    kept[16..24].copy_from_slice(&(1u64 << 40).to_le_bytes());
    assert!(matches!(Journal::decode(&kept), Err(Error::TooLarge { .. })));
    kept[16..24].copy_from_slice(&(1u64 << 20).to_le_bytes());
    assert!(matches!(Journal::decode(&kept), Err(Error::Corrupt { .. })), "promises more than it holds");
    kept[16..24].copy_from_slice(&65u64.to_le_bytes());
    assert!(matches!(Journal::decode(&kept), Err(Error::Corrupt { .. })), "holds more than it promises");
}

#[test]
fn a_clock_reading_in_a_loop_takes_at_most_four_bytes() {
    let mut raw = Vec::new();
    let mut encoder = Encoder::start(&mut raw, b"{}").unwrap();
    encoder.append(&mut raw, &Event::Site { id: 1, file: "a", function: "f", line: 1, importing: false }).unwrap();
    encoder.append(&mut raw, &Event::Site { id: 2, file: "a", function: "f", line: 2, importing: false }).unwrap();
    let reading = |step: i64, clock| {
        let site = step as u32 % 2 + 1;
        let value_ns = 1_577_836_800_000_000_000 + step * 900;
        Event::Clock { thread: 0, site, clock, value_ns, importing: false }
    };
    encoder.append(&mut raw, &reading(0, Clock::Wall)).unwrap();
    encoder.append(&mut raw, &reading(1, Clock::Monotonic)).unwrap();
    let before = encoder.len();
    for step in 2..1002 {
        let clock = if step % 2 == 0 { Clock::Wall } else { Clock::Monotonic };
        encoder.append(&mut raw, &reading(step, clock)).unwrap();
    }
    assert_eq!((encoder.len() - before) / 1000, 4);
}

#[test]
fn an_empty_journal_with_a_real_head_is_small() {
    let head = include_str!("data/head.json");
    let mut raw = Vec::new();
    Encoder::start(&mut raw, head.as_bytes()).unwrap();
    let len = finish(&raw, Form::BINARY).unwrap().len();
    assert!(len <= 1500, "{len} bytes");
}
