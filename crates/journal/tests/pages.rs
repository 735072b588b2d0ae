//! What people read, as snapshots: the timeline at several widths and the words of a comparison.

use hermetic_journal::timeline::{self, Layout};
use hermetic_journal::{diff, finish, Clock, Encoder, Event, Form, Journal, Reason, Source, WaitKind, Wake};

const HEAD: &str = include_str!("data/head.json");

const NOW_NS: i64 = 1_577_836_800_000_000_000;

fn encode(head: &str, events: &[Event<'_>]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut encoder = Encoder::start(&mut raw, head.as_bytes()).unwrap();
    events.iter().for_each(|event| encoder.append(&mut raw, event).unwrap());
    raw
}

fn site(id: u32, line: u32, function: &'static str) -> Event<'static> {
    Event::Site { id, file: "tests/test_checkout.py", function, line, importing: false }
}

fn clock(thread: u32, site: u32, clock: Clock, value_ns: i64) -> Event<'static> {
    Event::Clock { thread, site, clock, value_ns, importing: false }
}

/// One of everything, and a poll loop.
fn events() -> Vec<Event<'static>> {
    let mut events = vec![
        site(1, 31, "test_flaky_total"),
        site(2, 32, "test_flaky_total"),
        site(3, 90, "wait_until_paid"),
        Event::Site { id: 4, file: "src/shop/payments/provider.py", function: "charge", line: 210, importing: false },
        clock(0, 1, Clock::Wall, NOW_NS),
        Event::Entropy { thread: 0, site: 2, source: Source::Getrandom, bytes: b"0123456789abcdef", importing: false },
        Event::Entropy { thread: 0, site: 2, source: Source::Openssl, bytes: b"\x00\x01", importing: false },
        Event::Listing { thread: 0, site: 2, names: b"b.txt\0a.txt\0\xff.txt\0d", importing: false },
        Event::ThreadStart { thread: 1, parent: 0, ordinal: 0, pedigree: 0x1234_5678_9abc_def0 },
        Event::Wait { thread: 1, site: 3, kind: WaitKind::Sleep, duration_ns: 1_500_000_000 },
        Event::Jump { thread: 1, site: 3, to_ns: NOW_NS + 1_500_000_000, reason: Reason::Sleep },
    ];
    events.extend((0..2000).map(|step| clock(1, 3, Clock::Monotonic, 1_001_500_000_000 + step * 1_000)));
    events.extend([
        Event::Jump { thread: 1, site: 3, to_ns: NOW_NS + 86_400_000_000_123, reason: Reason::Advance },
        Event::Lookup { thread: 0, site: 4, host: "db.internal", port: 5432, status: 0, answers: "10.0.0.7\n::1" },
        Event::Lookup { thread: 0, site: 4, host: "nowhere", port: -1, status: -2, answers: "" },
        Event::Refusal { thread: 0, site: 4, subject: "api.example.com", port: 443 },
        Event::Refusal { thread: 0, site: 0, subject: "2001:db8::1", port: 80 },
        Event::ChildExit { thread: 0, site: 4, child: 0, status: 0x100 },
        Event::ChildExit { thread: 0, site: 4, child: 1, status: 9 },
        Event::State { thread: 0, name: "random", bytes: &[1; 2504] },
        Event::ThreadEnd { thread: 1 },
        Event::Looks { thread: 0, count: 1 },
        Event::Looks { thread: 0, count: 300 },
        Event::Got { thread: 0, site: 4, count: 1 },
        Event::Got { thread: 0, site: 4, count: 65536 },
        Event::Found { thread: 0, places: 1 << 63 },
        Event::Found { thread: 0, places: 0b1010 },
        Event::Wait { thread: 0, site: 4, kind: WaitKind::Lock, duration_ns: -1 },
        Event::Wake { thread: 0, how: Wake::Woken, by: 1 },
        Event::Wake { thread: 0, how: Wake::Woken, by: -1 },
        Event::Wake { thread: 0, how: Wake::Turn, by: -1 },
        Event::Wake { thread: 0, how: Wake::TimedOut, by: -1 },
        Event::Wake { thread: 0, how: Wake::Kernel, by: -1 },
        Event::Wake { thread: 0, how: Wake::Interrupted, by: -1 },
        Event::Wake { thread: 0, how: Wake::Deadlock, by: -1 },
        Event::Jump { thread: 0, site: 4, to_ns: 0, reason: Reason::Set },
        clock(0, 1, Clock::Wall, 1_000),
        Event::Note { thread: 0, text: "a remark with \u{1b}[31mcolour" },
    ]);
    events
}

fn page(raw: &[u8], layout: Layout) -> String {
    let mut out = Vec::new();
    timeline::write(&Journal::decode(raw).unwrap(), layout, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_timeline_of_everything() {
    let kept = finish(&encode(HEAD, &events()), Form::BINARY).unwrap();
    insta::assert_snapshot!("timeline", page(&kept, Layout::default()));
    insta::assert_snapshot!("timeline_80", page(&kept, Layout { width: Some(80), ..Layout::default() }));
    let full = page(&kept, Layout { full: true, ..Layout::default() });
    assert_eq!(full.lines().filter(|line| line.contains("monotonic")).count(), 2000);
}

#[test]
fn a_timeline_of_nothing() {
    insta::assert_snapshot!("timeline_empty", page(&encode("{}", &[]), Layout::default()));
}

#[test]
fn a_narrow_page_stays_in_its_columns() {
    let raw = encode(HEAD, &events());
    let text = page(&raw, Layout { width: Some(100), ..Layout::default() });
    for line in text.lines().skip_while(|line| !line.contains("call site")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn colour_marks_refusals() {
    let text = page(&encode(HEAD, &events()), Layout { color: true, ..Layout::default() });
    let line = text.lines().find(|line| line.contains("REFUSED")).unwrap();
    assert!(line.starts_with("\x1b[1;31m") && line.ends_with("\x1b[0m"), "{line:?}");
}

#[test]
fn a_readable_journal() {
    let mut short = events();
    short.retain(|event| !matches!(event, Event::Clock { clock: Clock::Monotonic, .. } | Event::State { .. }));
    let kept = finish(&encode(r#"{"test": "test_a.py::test_x"}"#, &short), Form::READABLE).unwrap();
    insta::assert_snapshot!("readable", String::from_utf8(kept).unwrap());
}

#[test]
fn threads_are_compared_by_pedigree_and_not_by_order() {
    let start = |thread, pedigree| Event::ThreadStart { thread, parent: 0, ordinal: pedigree as u32, pedigree };
    let note = |thread, text| Event::Note { thread, text };
    let left = encode("{}", &[start(1, 10), start(2, 20), note(1, "a"), note(2, "b"), note(2, "c")]);
    let right = encode("{}", &[start(1, 20), note(1, "b"), start(2, 10), note(1, "c"), note(2, "a")]);
    let [left, right] = [left, right].map(|raw| Journal::decode(&raw).unwrap());
    assert!(diff(&left, &right).is_same());
}

#[test]
fn paths_part_where_the_events_do() {
    let common = [site(1, 1, "f"), site(2, 2, "g"), clock(0, 1, Clock::Wall, 5)];
    let left = encode(r#"{"config": {"seed": "1"}}"#, &[&common[..], &[clock(0, 1, Clock::Wall, 6)]].concat());
    let right = encode(
        r#"{"config": {"seed": "2"}}"#,
        &[&common[..2], &[clock(0, 1, Clock::Wall, 7), clock(0, 2, Clock::Wall, 6), clock(0, 2, Clock::Wall, 6)]]
            .concat(),
    );
    let [left, right] = [left, right].map(|raw| Journal::decode(&raw).unwrap());
    let found = diff(&left, &right);
    assert_eq!(found.head, [("seed".to_string(), "1".to_string(), "2".to_string())]);
    let thread = &found.threads[0];
    assert_eq!(thread.events, [2, 3]);
    assert_eq!(thread.values["wall"], 1);
    let path = thread.path.as_ref().unwrap();
    assert_eq!(path.index, 1);
    assert_eq!(path.left.as_ref().unwrap().site, "tests/test_checkout.py:1 in f");
    assert_eq!(path.right.as_ref().unwrap().site, "tests/test_checkout.py:2 in g");
}
