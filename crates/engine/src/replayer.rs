//! Reading a journal while the test runs again.
//!
//! A recorded value is found by thread (its pedigree), kind and call site, not by its place in one long queue, so a test
//! that asks in another order still gets the answers that belong to its questions. Call sites are told apart by file and
//! function; within a function the order of the questions counts and not their lines, so a journal outlives an edit above
//! them, and a block can be recorded and replayed a few lines apart. A question too many or too few is found all the same.
//! What was recorded only because some module was imported at that moment may stay unused, and what is asked only by an
//! import is answered without consuming.

use crate::host::Host;
use crate::order::{Builder, Order, RecordedWait};
use crate::sites::{Sites, NATIVE};
use crate::waits::{write_end, Limited};
use hermetic_abi::PlaceText;
use hermetic_journal::{Error, Event, Journal, FORMAT_VERSION_MIN, GUEST};
use hermetic_model::stream::Pedigree;
use std::collections::HashMap;

/// What can be asked for. Events of one kind never answer another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Clock(hermetic_journal::Clock),
    Entropy,
    Listing,
}

impl Kind {
    fn of(event: &Event<'_>) -> Option<Kind> {
        match *event {
            Event::Clock { clock, .. } => Some(Kind::Clock(clock)),
            Event::Entropy { .. } => Some(Kind::Entropy),
            Event::Listing { .. } => Some(Kind::Listing),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Clock(hermetic_journal::Clock::Wall) => "a reading of the wall clock",
            Kind::Clock(hermetic_journal::Clock::Monotonic) => "a reading of the monotonic clock",
            Kind::Clock(_) => "a reading of a processor clock",
            Kind::Entropy => "random bytes",
            Kind::Listing => "a directory listing",
        }
    }
}

/// An answer from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Clock(i64),
    /// Range of the journal's bytes in [`Replayer::bytes`].
    Bytes(std::ops::Range<usize>),
    /// Number of a listing, for [`Replayer::rank`].
    Listing(usize),
}

struct Recorded {
    value: Value,
    kind: Kind,
    thread: u32,
    site: u32,
    /// Nobody need ask for it: an import did, or a guest.
    is_optional: bool,
    is_used: bool,
}

#[derive(Default)]
struct Queue {
    events: Vec<u32>,
    next: usize,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Only an import asked; serve something plausible.
    Importing,
    /// The journal has nothing of this kind left for this thread.
    Exhausted,
    /// The journal has something else here.
    Mismatch,
    /// The journal was already left behind.
    Diverged,
}

/// All guests (see [`crate::order`]): which of a pool's threads takes a job is not the same each time, so they share their answers.
pub(crate) const GUESTS: Pedigree = Pedigree(u64::MAX - 2);

/// The journal of a sandbox in replay mode.
pub struct Replayer {
    bytes: Vec<u8>,
    /// Recorded listings: place of each name.
    listings: Vec<HashMap<Box<[u8]>, usize>>,
    events: Vec<Recorded>,
    /// By pedigree, kind and function; a function goes by the first of its sites.
    queues: HashMap<(u64, Kind, u32), Queue>,
    threads: HashMap<u64, u32>,
    descriptions: Vec<Description>,
    functions: HashMap<u64, u32>,
    sites: Sites,
    next_unknown: u32,
    has_diverged: bool,
    /// The order of its threads, until the sandbox takes it. Journals of format 2 have none.
    order: Option<Order>,
}

struct Description {
    file: String,
    function: String,
    line: u32,
}

impl Description {
    fn is_function_of(&self, text: &PlaceText) -> bool {
        self.file == text.file.as_str() && self.function == text.function.as_str()
    }
}

impl Replayer {
    /// Reads a raw journal.
    pub fn open(raw: &[u8]) -> Result<Replayer, Error> {
        let journal = Journal::decode_raw(raw)?;
        let mut replayer = Replayer {
            bytes: Vec::new(),
            listings: Vec::new(),
            events: Vec::new(),
            queues: HashMap::new(),
            threads: HashMap::from([(Pedigree::ROOT.0, 0)]),
            descriptions: vec![Description { file: String::new(), function: String::new(), line: 0 }],
            functions: HashMap::new(),
            sites: Sites::default(),
            next_unknown: u32::MAX,
            has_diverged: false,
            order: None,
        };
        let mut builder = Builder::new();
        let mut pedigrees = vec![Pedigree::ROOT.0];
        for event in journal.events() {
            replayer.take(&event, &mut pedigrees);
            builder.take(&event, event.site().map_or(NATIVE, |site| replayer.function(site)));
        }
        if journal.version() > FORMAT_VERSION_MIN {
            replayer.order = Some(builder.finish());
        }
        Ok(replayer)
    }

    /// The order of the threads, once.
    pub fn take_order(&mut self) -> Option<Order> {
        self.order.take()
    }

    fn take(&mut self, event: &Event<'_>, pedigrees: &mut Vec<u64>) {
        match *event {
            Event::Site { id, file, function, line, .. } => self.take_site(id, file, function, line),
            Event::ThreadStart { thread, parent, ordinal, pedigree } => {
                let index = thread as usize;
                let is_guest = ordinal == GUEST || pedigrees.get(parent as usize) == Some(&GUESTS.0);
                let pedigree = if is_guest { GUESTS.0 } else { pedigree };
                if index < THREADS_MAX {
                    if pedigrees.len() <= index {
                        pedigrees.resize(index + 1, u64::MAX);
                    }
                    pedigrees[index] = pedigree;
                    self.threads.insert(pedigree, thread);
                }
            }
            Event::Clock { thread, site, value_ns, importing, .. } => {
                self.push(event, thread, site, importing, Value::Clock(value_ns), pedigrees);
            }
            Event::Listing { thread, site, names, importing } => {
                let places = names.split(|&byte| byte == 0).enumerate().map(|(place, name)| (name.into(), place));
                self.listings.push(places.collect());
                let value = Value::Listing(self.listings.len() - 1);
                self.push(event, thread, site, importing, value, pedigrees);
            }
            Event::Entropy { thread, site, bytes, importing, .. } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                let value = Value::Bytes(start..self.bytes.len());
                self.push(event, thread, site, importing, value, pedigrees);
            }
            _ => {}
        }
    }

    fn take_site(&mut self, id: u32, file: &str, function: &str, line: u32) {
        let index = id as usize;
        if index > SITES_MAX {
            return;
        }
        while self.descriptions.len() <= index {
            self.descriptions.push(Description { file: String::new(), function: String::new(), line: 0 });
        }
        self.descriptions[index] = Description { file: file.to_owned(), function: function.to_owned(), line };
        self.functions.entry(function_hash(file, function)).or_insert(id);
    }

    fn push(&mut self, event: &Event<'_>, thread: u32, site: u32, is_import: bool, value: Value, pedigrees: &[u64]) {
        let Some(kind) = Kind::of(event) else { return };
        let pedigree = pedigrees.get(thread as usize).copied().unwrap_or(u64::MAX);
        let index = self.events.len() as u32;
        let is_optional = is_import || pedigree == GUESTS.0;
        self.events.push(Recorded { value, kind, thread, site, is_optional, is_used: false });
        self.queues.entry((pedigree, kind, self.function(site))).or_default().events.push(index);
    }

    fn function(&self, site: u32) -> u32 {
        let Some(described) = self.descriptions.get(site as usize) else { return site };
        self.functions.get(&function_hash(&described.file, &described.function)).copied().unwrap_or(site)
    }

    /// The function that the calling thread is in, by the number of its first site in the journal (or a number that the
    /// journal does not have), and whether the thread is importing, or there by chance.
    pub fn site(&mut self, host: &dyn Host, by_chance: bool) -> (u32, bool) {
        let Replayer { sites, functions, descriptions, next_unknown, .. } = self;
        let (id, is_importing) = sites.current(host, |text| {
            let known = functions.get(&function_hash(text.file.as_str(), text.function.as_str())).copied();
            match known.filter(|&id| descriptions[id as usize].is_function_of(text)) {
                Some(id) => id,
                None => {
                    *next_unknown -= 1;
                    *next_unknown
                }
            }
        });
        (id, is_importing || by_chance)
    }

    /// The next answer of that kind for that thread at that site. It will not be given again.
    pub fn next(&mut self, pedigree: Pedigree, kind: Kind, site: u32, importing: bool) -> Result<Value, Miss> {
        let value = self.peek(pedigree, kind, site, importing)?;
        if let Some(queue) = self.queues.get_mut(&(pedigree.0, kind, site)) {
            self.events[queue.events[queue.next] as usize].is_used = true;
            queue.next += 1;
        }
        Ok(value)
    }

    /// What [`next`](Replayer::next) would give.
    pub fn peek(&self, pedigree: Pedigree, kind: Kind, site: u32, importing: bool) -> Result<Value, Miss> {
        if self.has_diverged {
            return Err(Miss::Diverged);
        }
        if let Some(queue) = self.queues.get(&(pedigree.0, kind, site)) {
            if let Some(&index) = queue.events.get(queue.next) {
                return Ok(self.events[index as usize].value.clone());
            }
        }
        if importing {
            return Err(Miss::Importing);
        }
        let thread = self.threads.get(&pedigree.0).copied();
        let is_left = |event: &&Recorded| !event.is_used && Some(event.thread) == thread && event.kind == kind;
        Err(if self.events.iter().any(|event| is_left(&event)) { Miss::Mismatch } else { Miss::Exhausted })
    }

    /// Bytes of an answer.
    pub fn bytes(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Where a name stood in a recorded listing; names that were not in it come last.
    pub fn rank(&self, listing: usize, name: &[u8]) -> usize {
        self.listings[listing].get(name).copied().unwrap_or(usize::MAX)
    }

    /// From here on the journal is no guide any more.
    pub fn diverge(&mut self) {
        self.has_diverged = true;
    }

    pub fn has_diverged(&self) -> bool {
        self.has_diverged
    }

    /// Writes what the journal expected next from this thread.
    pub fn write_expected(&self, pedigree: Pedigree, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        let thread = self.threads.get(&pedigree.0).copied();
        let next =
            self.events.iter().find(|event| !event.is_used && !event.is_optional && Some(event.thread) == thread);
        match next {
            Some(event) => self.write_event(event, out),
            None => write!(out, "nothing more from this thread"),
        }
    }

    /// Writes a recorded wait and how it ended.
    pub fn write_wait(&self, recorded: Option<&RecordedWait>, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        let Some(recorded) = recorded else { return write!(out, "no more waits of this thread") };
        match &recorded.asked {
            Some(asked) => {
                write!(out, "a wait for {}", Limited(asked))?;
                self.write_site(asked.site, out)?;
            }
            None => write!(out, "a turn")?,
        }
        match self.threads.get(&recorded.pedigree) {
            Some(0) | None => {}
            Some(thread) => write!(out, ", thread {thread}")?,
        }
        write_end(recorded, |pedigree| self.threads.get(&pedigree).copied(), out)
    }

    fn write_site(&self, site: u32, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        match self.descriptions.get(site as usize) {
            Some(place) if site != NATIVE => write!(out, " at {}:{} in {}", place.file, place.line, place.function),
            _ => write!(out, " in native code"),
        }
    }

    /// How many recorded events nobody asked for, and the first of them as text.
    pub fn leftovers(&self, out: &mut dyn core::fmt::Write) -> usize {
        let mut unused = self.events.iter().filter(|event| !event.is_used && !event.is_optional);
        let Some(first) = unused.next() else { return 0 };
        let _ = self.write_event(first, out);
        1 + unused.count()
    }

    fn write_event(&self, event: &Recorded, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        write!(out, "{}", event.kind.name())?;
        if let (Kind::Entropy, Value::Bytes(range)) = (event.kind, &event.value) {
            write!(out, " ({} bytes)", range.len())?;
        }
        self.write_site(event.site, out)?;
        if event.thread != 0 {
            write!(out, ", thread {}", event.thread)?;
        }
        Ok(())
    }
}

impl Kind {
    /// The kind for a sentence that says what was asked.
    pub fn text(self) -> &'static str {
        self.name()
    }
}

/// More threads or sites than this are not read from a journal; no test has them, a damaged file may.
const THREADS_MAX: usize = 1 << 20;
const SITES_MAX: usize = 1 << 20;

/// FNV-1a over the two parts.
fn function_hash(file: &str, function: &str) -> u64 {
    let bytes = file.bytes().chain([0]).chain(function.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_journal::{Clock, Encoder, Source};

    fn journal(events: &[Event<'_>]) -> Replayer {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::start(&mut bytes, b"{}").expect("room");
        for event in events {
            encoder.append(&mut bytes, event).expect("room");
        }
        Replayer::open(&bytes).expect("readable")
    }

    fn reading(thread: u32, site: u32, value_ns: i64) -> Event<'static> {
        Event::Clock { thread, site, clock: Clock::Wall, value_ns, importing: false }
    }

    const WALL: Kind = Kind::Clock(Clock::Wall);

    #[test]
    fn answers_belong_to_their_thread_and_site() {
        let other = Pedigree::ROOT.child(0);
        let start = Event::ThreadStart { thread: 1, parent: 0, ordinal: 0, pedigree: other.0 };
        let mut replay = journal(&[reading(0, 1, 10), start, reading(1, 1, 20), reading(0, 2, 30), reading(0, 1, 40)]);
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 2, false), Ok(Value::Clock(30)));
        assert_eq!(replay.next(other, WALL, 1, false), Ok(Value::Clock(20)));
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 1, false), Ok(Value::Clock(10)));
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 3, false), Err(Miss::Mismatch));
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 3, true), Err(Miss::Importing));
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 1, false), Ok(Value::Clock(40)));
        assert_eq!(replay.next(Pedigree::ROOT, WALL, 1, false), Err(Miss::Exhausted));
        assert_eq!(replay.leftovers(&mut String::new()), 0);
    }

    #[test]
    fn lines_do_not_count_within_a_function() {
        let first = Event::Site { id: 1, file: "test_a.py", function: "test_x", line: 7, importing: false };
        let second = Event::Site { id: 2, file: "test_a.py", function: "test_x", line: 9, importing: false };
        let other = Event::Site { id: 3, file: "test_a.py", function: "test_y", line: 9, importing: false };
        let events = [first, reading(0, 1, 10), second, other, reading(0, 2, 20), reading(0, 3, 30), reading(0, 2, 40)];
        let mut replay = journal(&events);
        let (x, y) = (replay.function(2), replay.function(3));
        assert_eq!((x, y), (1, 3));
        let answers: Vec<_> = [x, y, x, x, x].map(|function| replay.next(Pedigree::ROOT, WALL, function, false)).into();
        let found = [10, 30, 20, 40].map(|value| Ok(Value::Clock(value)));
        assert_eq!(answers[..4], found);
        assert_eq!(answers[4], Err(Miss::Exhausted));
    }

    #[test]
    fn what_is_left_is_named() {
        let site = Event::Site { id: 1, file: "test_a.py", function: "test_x", line: 7, importing: false };
        let draw = Event::Entropy { thread: 0, site: 1, source: Source::Getrandom, bytes: b"abc", importing: false };
        let imported = Event::Clock { thread: 0, site: 1, clock: Clock::Wall, value_ns: 1, importing: true };
        let replay = journal(&[site, imported, draw]);
        let mut text = String::new();
        assert_eq!(replay.leftovers(&mut text), 1);
        assert_eq!(text, "random bytes (3 bytes) at test_a.py:7 in test_x");
    }
}
