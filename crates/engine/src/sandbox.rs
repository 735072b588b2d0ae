//! A sandbox: entered with settings, shared by threads, left with findings.
//!
//! Hooks of several threads use a sandbox at the same moment, and a slow one may still hold the reference when the sandbox
//! is left and entered anew. So sandboxes are never freed: there is one per level, its scalar fields are atomics, everything
//! else is behind a lock, and `generation` says whose life it is. A late hook then sees the new sandbox, never a torn one.

use crate::finding::Findings;
use crate::host::Host;
use crate::order::{Left, Order};
use crate::recorder::{BoxedSink, Recorder};
use crate::replayer::Replayer;
use crate::thread::{Class, Identity, Level, Thread};
use crate::time::{Clockwork, Timekeeper};
use crate::waits::Pace;
use hermetic_abi::{finding, flag, Finding, Outcome, PlaceText, Text};
use hermetic_journal::{Event, GUEST};
use hermetic_model::stream::{Key, Pedigree, Purpose, Stream};
use hermetic_policy::Policy;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What a sandbox is entered with. Times in nanoseconds.
pub struct Settings<'a> {
    /// Bits of [`hermetic_abi::flag`].
    pub flags: u32,
    /// Decimal text.
    pub seed: &'a [u8],
    pub now_ns: i64,
    /// Where the monotonic clock starts.
    pub monotonic_ns: i64,
    /// The kernel's coarse wall clock at entry: what is written from now on carries virtual time stamps.
    pub real_coarse_ns: i64,
    /// The clocks are those of a parent process and go on as they are.
    pub inherits: bool,
    pub tick_ps: u64,
    pub spin_limit: u64,
    /// Policy entries, one a line.
    pub allow: &'a str,
}

/// What a sandbox does with journals.
pub enum Journaling<'a> {
    None,
    Record { sink: BoxedSink, head: &'a [u8] },
    Replay { raw: &'a [u8] },
}

/// Why a sandbox cannot be entered. Nothing has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EnterError {
    /// A policy entry is not one; the text names it and what is accepted.
    Entry(String),
    /// The journal cannot be replayed.
    Journal(hermetic_journal::Error),
    /// There is no room for the journal's first bytes.
    Full,
}

impl fmt::Display for EnterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnterError::Entry(text) => out.write_str(text),
            EnterError::Journal(error) => write!(out, "{error}"),
            EnterError::Full => write!(out, "no room to record: the file system of the journal is full"),
        }
    }
}

/// Where a subsystem's answers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// The subsystem is not part of the sandbox.
    Off = 0,
    Virtual = 1,
    /// Real, and written down.
    Record = 2,
    /// From the journal.
    Replay = 3,
}

impl Mode {
    fn from_u8(number: u8) -> Mode {
        [Mode::Off, Mode::Virtual, Mode::Record, Mode::Replay][usize::from(number & 3)]
    }
}

/// The journal of the moment.
#[allow(clippy::large_enum_variant, reason = "there is one per level, made once")]
pub(crate) enum Tape {
    None,
    Recorder(Recorder),
    Replayer(Replayer),
}

/// The key of all streams, worked out when the first of them is drawn from: many sandboxes never ask.
#[derive(Default)]
struct Keyring {
    seed: Vec<u8>,
    key: Option<Key>,
}

impl Keyring {
    fn begin(&mut self, seed: &[u8]) {
        self.seed.clear();
        self.seed.extend_from_slice(seed);
        self.key = None;
    }

    fn key(&mut self) -> Key {
        *self.key.get_or_insert_with(|| Key::from_seed(&self.seed))
    }
}

/// One level's sandbox.
pub struct Sandbox {
    depth: usize,
    generation: AtomicU64,
    flags: AtomicU32,
    clock_mode: AtomicU8,
    entropy_mode: AtomicU8,
    order_mode: AtomicU8,
    pub(crate) pace: AtomicU8,
    pub(crate) is_loose: AtomicBool,
    threads: AtomicU32,
    pub(crate) time: Timekeeper,
    keyring: Mutex<Keyring>,
    pub(crate) policy: Mutex<Policy>,
    pub(crate) findings: Mutex<Findings>,
    pub(crate) tape: Mutex<Tape>,
    pub(crate) turns: Mutex<Order>,
}

impl Sandbox {
    /// The sandbox of one level, not entered yet, on these clocks.
    pub fn new(depth: usize, clockwork: &'static Clockwork) -> Sandbox {
        Sandbox {
            depth,
            generation: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            clock_mode: AtomicU8::new(0),
            entropy_mode: AtomicU8::new(0),
            order_mode: AtomicU8::new(0),
            pace: AtomicU8::new(0),
            is_loose: AtomicBool::new(false),
            threads: AtomicU32::new(0),
            time: Timekeeper::new(clockwork),
            keyring: Mutex::default(),
            policy: Mutex::new(Policy::new(false, false)),
            findings: Mutex::new(Findings::default()),
            tape: Mutex::new(Tape::None),
            turns: Mutex::default(),
        }
    }

    /// Makes this the sandbox `generation`, entered by `thread`. On an error nothing has changed.
    pub fn enter(
        &self,
        generation: u64,
        settings: &Settings<'_>,
        journal: Journaling<'_>,
        thread: &mut Thread,
    ) -> Result<(), EnterError> {
        let policy = policy_of(settings.flags, settings.allow)?;
        let (mut tape, mode) = match journal {
            Journaling::None => (Tape::None, Mode::Virtual),
            Journaling::Record { sink, head } => {
                (Tape::Recorder(Recorder::start(sink, head).map_err(|_| EnterError::Full)?), Mode::Record)
            }
            Journaling::Replay { raw } => {
                (Tape::Replayer(Replayer::open(raw).map_err(EnterError::Journal)?), Mode::Replay)
            }
        };
        let flags = settings.flags;
        let pick = |part: u32, pin: u32| match (flags & part != 0, flags & pin != 0) {
            (false, _) => Mode::Off,
            (true, true) => Mode::Virtual,
            (true, false) => mode,
        };
        let clock = pick(flag::CLOCK, flag::PINNED_CLOCK);
        let order = if let Tape::Replayer(replayer) = &mut tape { replayer.take_order() } else { None };
        self.time.reset(settings, clock);
        self.clock_mode.store(clock as u8, Ordering::Relaxed);
        self.entropy_mode.store(pick(flag::ENTROPY, flag::PINNED_SEED) as u8, Ordering::Relaxed);
        self.order_mode.store(pick(flag::ORDER_SORTED | flag::ORDER_CHAOS, 0) as u8, Ordering::Relaxed);
        self.set_pace(Pace::of(clock, order.is_some()));
        self.is_loose.store(false, Ordering::Relaxed);
        if let Some(order) = order {
            // Whoever replayed here before has left none behind.
            *lock(&self.turns) = order;
        }
        self.flags.store(flags, Ordering::Relaxed);
        self.threads.store(1, Ordering::Relaxed);
        lock(&self.keyring).begin(settings.seed);
        *lock(&self.policy) = policy;
        lock(&self.findings).clear();
        *lock(&self.tape) = tape;
        self.generation.store(generation, Ordering::Release);
        thread.class = Class::Controlled;
        thread.levels[self.depth].begin(generation, Pedigree::ROOT, 0, 0);
        Ok(())
    }

    /// Ends the sandbox. Returns what there is to tell, and the recorder's sink with the journal in it.
    pub fn leave(&self) -> (Outcome, Option<BoxedSink>) {
        let tape = std::mem::replace(&mut *lock(&self.tape), Tape::None);
        let mut outcome = Outcome { elapsed_ns: self.time.elapsed(), ..Outcome::default() };
        outcome.threads = self.threads.load(Ordering::Relaxed).saturating_sub(1);
        let sink = match tape {
            Tape::None => None,
            Tape::Recorder(recorder) => {
                outcome.events = recorder.events();
                outcome.journal_len = recorder.len();
                self.note_full(&recorder);
                Some(recorder.finish())
            }
            Tape::Replayer(replayer) => {
                let order = std::mem::take(&mut *lock(&self.turns));
                self.note_leftovers(&replayer, &order.left());
                self.note_loose();
                None
            }
        };
        let findings = lock(&self.findings);
        outcome.findings = findings.len() as u32;
        outcome.fatal = findings.fatal();
        (outcome, sink)
    }

    fn note_full(&self, recorder: &Recorder) {
        if recorder.is_full() {
            let mut found = crate::finding::blank(finding::RECORD_STOPPED, false);
            let events = recorder.events();
            let _ = write!(found.message, "recording stopped after {events} events: the disk is full");
            lock(&self.findings).add(&found);
        }
    }

    fn note_leftovers(&self, replayer: &Replayer, waits: &Left) {
        if replayer.has_diverged() {
            return;
        }
        let mut first = Text::new();
        let count = replayer.leftovers(&mut first);
        self.note_left(count, ["event was not asked for", "events were not asked for"], &first);
        let mut first = Text::new();
        let _ = replayer.write_wait(waits.first.as_ref(), &mut first);
        self.note_left(waits.count, ["wait was not made", "waits were not made"], &first);
    }

    fn note_left(&self, count: usize, [one, several]: [&str; 2], first: &Text) {
        if count == 0 {
            return;
        }
        let mut found = crate::finding::blank(finding::REPLAY_LEFTOVER, self.is_strict());
        let what = if count == 1 { one } else { several };
        let _ = write!(found.message, "{count} recorded {what}; the first: {}", first.as_str());
        lock(&self.findings).add(&found);
    }

    /// Notes that a child takes no part, and that time followed the real one for its sake.
    pub fn note_external(&self, name: &str) {
        let mut found = crate::finding::blank(finding::EXTERNAL_CHILD, false);
        let why = if self.has(flag::INHERIT) {
            "a static program, one with other rights, or one of another C library cannot be reached"
        } else {
            "inherit=\"off\" keeps children out"
        };
        let _ = found.subject.write_str(name);
        let _ = write!(
            found.message,
            "time followed the real one while the child {name} ran: it takes no part in the sandbox, so nobody knows what it \
             waits for ({why})"
        );
        lock(&self.findings).add(&found);
    }

    /// Notes that a thread of this number kept others waiting for too long.
    pub fn note_lost_turn(&self, number: u32) {
        let mut found = crate::finding::blank(finding::TURN_LOST, false);
        let _ = write!(
            found.message,
            "thread {number} computed for more than a second of real time while others were ready, so they went on beside it: \
             from there on the order of threads is the machine's, not the seed's"
        );
        lock(&self.findings).add(&found);
    }

    /// Whether a journal is being written.
    pub fn is_recording(&self) -> bool {
        matches!(*lock(&self.tape), Tape::Recorder(_))
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether one of these [`flag`] bits is set.
    #[inline]
    pub fn has(&self, bits: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & bits != 0
    }

    #[inline]
    pub fn clock_mode(&self) -> Mode {
        Mode::from_u8(self.clock_mode.load(Ordering::Relaxed))
    }

    #[inline]
    pub fn entropy_mode(&self) -> Mode {
        Mode::from_u8(self.entropy_mode.load(Ordering::Relaxed))
    }

    #[inline]
    pub fn order_mode(&self) -> Mode {
        Mode::from_u8(self.order_mode.load(Ordering::Relaxed))
    }

    /// The thread's record of this sandbox; it joins now if this is its first call inside.
    #[inline]
    pub(crate) fn level<'t>(&self, thread: &'t mut Thread) -> &'t mut Level {
        if !self.is_known(thread) {
            self.join(thread);
        }
        &mut thread.levels[self.depth]
    }

    fn key(&self) -> Key {
        lock(&self.keyring).key()
    }

    /// The thread's stream for a purpose.
    pub(crate) fn stream<'t>(&self, thread: &'t mut Thread, purpose: Purpose) -> &'t mut Stream {
        let level = self.level(thread);
        if !level.is_keyed {
            level.key_streams(&self.key());
        }
        level.stream(purpose)
    }

    /// Whether the thread has taken part in this sandbox yet.
    pub(crate) fn is_known(&self, thread: &Thread) -> bool {
        thread.levels[self.depth].generation == self.generation()
    }

    /// A thread from an earlier sandbox (a wider fixture's) takes part, under the name that its maker gave it.
    #[cold]
    fn join(&self, thread: &mut Thread) {
        let number = self.threads.fetch_add(1, Ordering::Relaxed);
        let pedigree = thread.identity.pedigree_in(self.generation());
        thread.levels[self.depth].begin(self.generation(), pedigree, number, 0);
        thread.levels[self.depth].is_guest = true;
        self.record_start(number, 0, GUEST, pedigree);
    }

    /// Renames the calling thread after a fork, in the child: the `ordinal`-th child of its parent draws its own bytes.
    pub fn become_child(&self, thread: &mut Thread, ordinal: u64) {
        let level = self.level(thread);
        let (pedigree, ticks) = (level.pedigree.child(ordinal), level.ticks);
        level.begin(self.generation(), pedigree, level.number, ticks);
    }

    /// Counts a child that the thread is about to start, and returns its number.
    pub fn next_child(&self, thread: &mut Thread, host: &dyn Host) -> u64 {
        self.commit(thread, host);
        let level = self.level(thread);
        level.children += 1;
        level.children - 1
    }

    /// Names the calling thread, the first of a started program: its maker chose the name.
    pub fn become_pedigree(&self, thread: &mut Thread, pedigree: Pedigree) {
        thread.identity = Identity::new(pedigree, self.generation(), &self.key());
        thread.levels[self.depth].begin(self.generation(), pedigree, 0, 0);
    }

    /// The name of a program that the thread is about to start.
    pub fn child_pedigree(&self, thread: &mut Thread, host: &dyn Host) -> Pedigree {
        let ordinal = self.next_child(thread, host);
        self.level(thread).pedigree.child(ordinal)
    }

    /// The hash seed of started programs that want one.
    pub fn hash_seed(&self) -> u32 {
        let key = self.key();
        Stream::new(&key, Pedigree::ROOT, Purpose::HashSeed).next_u64() as u32
    }

    /// Prepares the record of a thread that `maker` is about to start.
    pub fn spawn(&self, maker: &mut Thread, child: &mut Thread, host: &dyn Host) {
        let ordinal = self.next_child(maker, host);
        let level = self.level(maker);
        let pedigree = level.pedigree.child(ordinal);
        let Level { number: parent, ticks, is_guest, .. } = *level;
        let number = self.threads.fetch_add(1, Ordering::Relaxed);
        child.class = Class::Controlled;
        child.identity = Identity::new(pedigree, self.generation(), &self.key());
        // The child's clock continues from its maker's, so that what was read before the start is not in its future.
        child.levels[self.depth].begin(self.generation(), pedigree, number, ticks);
        child.levels[self.depth].is_guest = is_guest;
        self.record_start(number, parent, ordinal as u32, pedigree);
    }

    fn record_start(&self, thread: u32, parent: u32, ordinal: u32, pedigree: Pedigree) {
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            recorder.name_thread(pedigree.0, thread);
            recorder.append(&Event::ThreadStart { thread, parent, ordinal, pedigree: pedigree.0 });
        }
    }

    /// Whether the thread comes from a wider sandbox, or was started by one that does.
    pub fn is_guest(&self, thread: &mut Thread) -> bool {
        self.level(thread).is_guest
    }

    /// A thread ends.
    pub fn end(&self, thread: &mut Thread, host: &dyn Host) {
        if self.is_known(thread) {
            self.commit(thread, host);
            let level = &thread.levels[self.depth];
            if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
                recorder.append(&Event::ThreadEnd { thread: level.number });
            }
        }
    }

    /// Writes a generator's state into the journal.
    pub fn record_state(&self, thread: &mut Thread, host: &dyn Host, name: &str, bytes: &[u8]) -> bool {
        self.commit(thread, host);
        let number = self.level(thread).number;
        match &mut *lock(&self.tape) {
            Tape::Recorder(recorder) => {
                recorder.append(&Event::State { thread: number, name, bytes });
                true
            }
            _ => false,
        }
    }

    pub fn finding(&self, index: usize) -> Option<Finding> {
        lock(&self.findings).get(index).cloned()
    }

    /// Adds a finding and, where it is an error, interrupts the calling thread with it.
    pub(crate) fn report(&self, mut found: Finding, thread: &mut Thread, host: &dyn Host, interrupts: bool) {
        if found.site.len == 0 {
            write_site(host, &mut found.site);
        }
        if interrupts {
            thread.interrupt = found.message.clone();
            host.interrupt(found.kind);
        }
        lock(&self.findings).add(&found);
    }

    /// The seed of scheduling decisions.
    pub fn schedule_seed(&self) -> u64 {
        let key = self.key();
        Stream::new(&key, Pedigree::ROOT, Purpose::Schedule).next_u64()
    }

    /// Holds all locks, so that a fork copies none of them half-way.
    pub fn lock_all(&self) -> Held<'_> {
        Held(lock(&self.keyring), lock(&self.policy), lock(&self.findings), lock(&self.tape), self.time.lock())
    }

    /// In a forked child: the parent goes on with the journal, the child must not. Its waits are real, and so is its time: what
    /// a replaying parent's clocks show, which lie in shared memory, goes from one recorded reading to the next.
    pub fn forget_journal(&self) {
        if matches!(self.clock_mode(), Mode::Record | Mode::Replay) {
            self.set_pace(Pace::Off);
        }
        if self.clock_mode() == Mode::Replay {
            self.clock_mode.store(Mode::Off as u8, Ordering::Relaxed);
        }
        let tape = std::mem::replace(&mut *lock(&self.tape), Tape::None);
        // The mapping is shared with the parent; dropping the child's view of it would be right, but it frees memory, and
        // a fork handler may not.
        std::mem::forget(tape);
    }
}

/// All locks of a sandbox.
#[allow(dead_code, reason = "held, not read")]
pub struct Held<'a>(
    MutexGuard<'a, Keyring>,
    MutexGuard<'a, Policy>,
    MutexGuard<'a, Findings>,
    MutexGuard<'a, Tape>,
    crate::time::Held<'a>,
);

/// The library is built with `panic = "abort"`, so a lock is never poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn policy_of(flags: u32, allow: &str) -> Result<Policy, EnterError> {
    let mut policy = Policy::new(flags & flag::ALLOW_LOOPBACK != 0, flags & flag::ALLOW_UNIX != 0);
    for entry in allow.lines().filter(|line| !line.is_empty()) {
        policy.add(entry).map_err(|error| EnterError::Entry(error.to_string()))?;
    }
    Ok(policy)
}

/// `file:line in function` of the calling thread, or nothing.
pub(crate) fn write_site(host: &dyn Host, out: &mut Text) {
    let mut text = PlaceText::BLANK;
    if let Some(place) = host.place() {
        if host.describe(place, &mut text) {
            let _ = write!(out, "{}:{} in {}", text.file.as_str(), text.line, text.function.as_str());
        }
    }
}
