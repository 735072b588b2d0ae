//! What differs between two journals, thread by thread.
//!
//! Threads are matched by pedigree, so that the order in which they happened to run does not matter. Events of a thread are
//! compared one by one, first by what happened and where (the *path*), then by value: two recordings of one test read other
//! times, and that says little; where they leave a common path, one learns why they end differently.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::describe;
use crate::event::Event;
use crate::journal::Place;
use crate::{text, Events, Journal};

/// One side of a difference: the event in words, or nothing where the thread has no more events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub label: &'static str,
    pub value: String,
    /// `file:line in function`; empty where unknown.
    pub site: String,
}

/// A pair of events that differ. `index` counts the thread's events from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub index: u64,
    pub left: Option<Side>,
    pub right: Option<Side>,
}

/// The comparison of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadDiff {
    /// The thread's number on the left, or on the right where it exists only there.
    pub thread: u32,
    /// Events on each side.
    pub events: [u64; 2],
    /// Where they do different things, or do them elsewhere.
    pub path: Option<Difference>,
    /// The first equal thing in the equal place with another answer, before the paths part.
    pub value: Option<Difference>,
    /// How many answers differ before the paths part, by label.
    pub values: BTreeMap<&'static str, u64>,
}

impl ThreadDiff {
    /// Whether both sides say the same.
    pub fn is_same(&self) -> bool {
        self.path.is_none() && self.value.is_none()
    }
}

/// A value of the head that differs: name, left, right.
pub type HeadDiff = (String, String, String);

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    pub head: Vec<HeadDiff>,
    /// In the order of appearance.
    pub threads: Vec<ThreadDiff>,
}

impl Diff {
    /// Whether all threads say the same; the heads may still differ.
    pub fn is_same(&self) -> bool {
        self.threads.iter().all(ThreadDiff::is_same)
    }
}

/// Compares two journals. Memory grows with how far apart the two orders are, not with the length of the journals.
///
/// ```
/// use hermetic_journal::{diff, Encoder, Event, Journal};
/// let record = |note| {
///     let mut raw = Vec::new();
///     let mut encoder = Encoder::start(&mut raw, b"{}").unwrap();
///     encoder.append(&mut raw, &Event::Note { thread: 0, text: note }).unwrap();
///     Journal::decode(&raw).unwrap()
/// };
/// assert!(diff(&record("a"), &record("a")).is_same());
/// assert_eq!(diff(&record("a"), &record("b")).threads[0].values["note"], 1);
/// ```
pub fn diff(left: &Journal, right: &Journal) -> Diff {
    let mut comparison = Comparison::default();
    let mut walks = [Walk::new(left), Walk::new(right)];
    loop {
        let steps = walks.each_mut().map(Walk::next);
        if steps.iter().all(Option::is_none) {
            break;
        }
        for (side, step) in steps.into_iter().enumerate() {
            if let Some((key, event)) = step {
                comparison.add(side, key, event);
            }
        }
    }
    Diff { head: head_diff(left, right), threads: comparison.finish() }
}

/// What a thread is called across journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    First,
    Pedigree(u64),
    /// Never announced.
    Number(u32),
}

/// An event with its place, ready to be compared with one of another journal.
#[derive(Clone, Copy)]
struct Located<'a> {
    event: Event<'a>,
    place: Option<Place<'a>>,
}

impl Located<'_> {
    fn is_same_path(&self, other: &Located<'_>) -> bool {
        describe::label(&self.event) == describe::label(&other.event)
            && self.event.kind_number() == other.event.kind_number()
            && self.place == other.place
    }

    /// Numbers of threads and sites are a journal's own, so values are compared in words; bytes in full.
    fn is_same_value(&self, other: &Located<'_>) -> bool {
        match (self.event, other.event) {
            (Event::Entropy { source: a, bytes: left, .. }, Event::Entropy { source: b, bytes: right, .. }) => {
                (a, left) == (b, right)
            }
            (Event::State { name: a, bytes: left, .. }, Event::State { name: b, bytes: right, .. }) => {
                (a, left) == (b, right)
            }
            (Event::Listing { names: left, .. }, Event::Listing { names: right, .. }) => left == right,
            (Event::ThreadStart { pedigree: left, .. }, Event::ThreadStart { pedigree: right, .. }) => left == right,
            (left, right) => describe::value(&left) == describe::value(&right),
        }
    }

    fn side(&self) -> Side {
        let site = self.place.map(|place| text::line(&place.to_string())).unwrap_or_default();
        Side { label: describe::label(&self.event), value: describe::value(&self.event), site }
    }
}

/// The events of one journal with the keys of their threads and their places.
struct Walk<'a> {
    events: Events<'a>,
    keys: HashMap<u32, Key>,
    places: HashMap<u32, Place<'a>>,
}

impl<'a> Walk<'a> {
    fn new(journal: &'a Journal) -> Walk<'a> {
        Walk { events: journal.events(), keys: HashMap::from([(0, Key::First)]), places: HashMap::new() }
    }

    fn next(&mut self) -> Option<((Key, u32), Located<'a>)> {
        loop {
            let event = self.events.next()?;
            match event {
                Event::Site { id, file, function, line, importing } => {
                    self.places.insert(id, Place { file, function, line, importing });
                }
                Event::ThreadStart { thread, pedigree, .. } if thread != 0 => {
                    self.keys.insert(thread, Key::Pedigree(pedigree));
                }
                _ => {}
            }
            let Some(thread) = event.thread() else { continue };
            let key = self.keys.get(&thread).copied().unwrap_or(Key::Number(thread));
            let place = event.site().and_then(|site| self.places.get(&site).copied());
            return Some(((key, thread), Located { event, place }));
        }
    }
}

/// One thread while both journals are walked.
struct Pair<'a> {
    diff: ThreadDiff,
    waiting: [VecDeque<Located<'a>>; 2],
    compared: u64,
}

#[derive(Default)]
struct Comparison<'a> {
    order: HashMap<Key, usize>,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Comparison<'a> {
    fn add(&mut self, side: usize, (key, thread): (Key, u32), located: Located<'a>) {
        let at = *self.order.entry(key).or_insert_with(|| {
            let diff = ThreadDiff { thread, events: [0; 2], path: None, value: None, values: BTreeMap::new() };
            self.pairs.push(Pair { diff, waiting: Default::default(), compared: 0 });
            self.pairs.len() - 1
        });
        let pair = &mut self.pairs[at];
        pair.diff.events[side] += 1;
        // After the paths have parted, events are only counted.
        if pair.diff.path.is_none() {
            pair.waiting[side].push_back(located);
            pair.compare();
        }
    }

    fn finish(self) -> Vec<ThreadDiff> {
        let finished = self.pairs.into_iter().map(|mut pair| {
            let rest = pair.waiting.each_ref().map(|queue| queue.front().map(Located::side));
            if rest.iter().any(Option::is_some) && pair.diff.path.is_none() {
                let [left, right] = rest;
                pair.diff.path = Some(Difference { index: pair.compared, left, right });
            }
            pair.diff
        });
        finished.collect()
    }
}

impl Pair<'_> {
    fn compare(&mut self) {
        let [Some(left), Some(right)] = self.waiting.each_ref().map(|queue| queue.front().copied()) else { return };
        let difference =
            || Some(Difference { index: self.compared, left: Some(left.side()), right: Some(right.side()) });
        if !left.is_same_path(&right) {
            self.diff.path = difference();
            self.waiting = Default::default();
            return;
        }
        if !left.is_same_value(&right) {
            if self.diff.value.is_none() {
                self.diff.value = difference();
            }
            *self.diff.values.entry(describe::label(&left.event)).or_default() += 1;
        }
        self.compared += 1;
        for queue in &mut self.waiting {
            queue.pop_front();
        }
    }
}

fn head_diff(left: &Journal, right: &Journal) -> Vec<HeadDiff> {
    let (left, right) = (left.head(), right.head());
    let mut rows = Vec::new();
    let mut add = |name: &str, left: String, right: String| {
        if left != right {
            rows.push((name.to_string(), left, right));
        }
    };
    let test = |test: &Option<String>| test.as_deref().map_or_else(|| "none".to_string(), text::line);
    add("test", test(&left.test), test(&right.test));
    add("hermetic", text::line(&left.hermetic), text::line(&right.hermetic));
    for (left, right) in [(&left.config, &right.config), (&left.fingerprint, &right.fingerprint)] {
        let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        for name in names {
            let shown = |map: &serde_json::Map<String, serde_json::Value>| {
                map.get(name).map_or_else(|| "none".to_string(), crate::head::plain)
            };
            add(name, shown(left), shown(right));
        }
    }
    rows
}
