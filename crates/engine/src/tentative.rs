//! Readings that may be the interpreter's own.
//!
//! CPython reads the monotonic clock whenever it takes a lock, even if it only tries to, and with its lock held, as the
//! program's own readings are: each `print`, each logging call, each call of a tracer does. Whether it happens says nothing
//! about the program, so it must neither tick nor stand in a journal. Nothing tells such a reading from `time.monotonic()`
//! until the semaphore is asked for, in the same call of the same instruction. So a reading by the interpreter's image is
//! *tentative*: the thread keeps it, and nothing has changed, until the thread asks for something else. Then it is committed
//! (it ticks, is written down, consumes its recorded answer, or is reported) before that is answered, so the order within a
//! thread is kept; or a semaphore is asked for at the same place, and it is forgotten.

use crate::host::Host;
use crate::replayer::{Kind, Miss, Value};
use crate::sandbox::{lock, Mode, Sandbox, Tape};
use crate::thread::{Basis, Thread};
use hermetic_abi::Place;
use hermetic_journal::Event;
use hermetic_model::clock::Clock;

const KIND: Kind = Kind::Clock(hermetic_journal::Clock::Monotonic);

/// A reading of the monotonic clock, until it is known whose it is.
pub(crate) struct Tentative {
    /// Where the thread stood.
    place: Option<Place>,
    answer: Answer,
}

/// What it was answered with, and so what is left to do if it was the program's.
enum Answer {
    /// The virtual clock: it has to tick.
    Virtual,
    /// The real clock: it has to be written down.
    Real { site: u32, importing: bool, value_ns: i64 },
    /// The journal: the recorded reading has to be consumed.
    Recorded { site: u32, importing: bool, basis: Basis },
    /// The journal had nothing: the thread's record holds what there is to tell.
    Missed,
}

impl Sandbox {
    /// What the monotonic clock shows to the interpreter's image. Where no interpreted code runs it is the interpreter that
    /// asks, for handing its lock over; nothing ticks then, and nothing is written down.
    #[inline]
    pub fn read_tentatively(&self, thread: &mut Thread, host: &dyn Host, real: impl FnOnce() -> i64) -> i64 {
        self.commit(thread, host);
        let (is_running, place) = host.look();
        if !is_running {
            let value_ns = self.peek_clock(thread, Clock::Monotonic, real);
            self.level(thread).basis = Some(Basis { value_ns, elapsed_ns: self.time.elapsed() });
            return value_ns;
        }
        if self.clock_mode() == Mode::Virtual {
            let level = self.level(thread);
            let line = self.time.now();
            let value_ns = line.monotonic(level.ticks);
            level.basis = Some(Basis { value_ns, elapsed_ns: line.elapsed() });
            level.tentative = Some(Tentative { place, answer: Answer::Virtual });
            return value_ns;
        }
        self.read_journaled_tentatively(thread, host, place, real)
    }

    fn read_journaled_tentatively(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        place: Option<Place>,
        real: impl FnOnce() -> i64,
    ) -> i64 {
        match self.clock_mode() {
            Mode::Record => self.record_tentatively(thread, host, place, real),
            Mode::Replay => self.replay_tentatively(thread, host, place),
            Mode::Off | Mode::Virtual => real(),
        }
    }

    fn record_tentatively(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        place: Option<Place>,
        real: impl FnOnce() -> i64,
    ) -> i64 {
        let level = self.level(thread);
        let by_chance = level.is_by_chance();
        let value_ns = real().saturating_add(self.time.now().monotonic(0));
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let (site, importing) = recorder.site(host, by_chance);
            level.tentative = Some(Tentative { place, answer: Answer::Real { site, importing, value_ns } });
        }
        value_ns
    }

    fn replay_tentatively(&self, thread: &mut Thread, host: &dyn Host, place: Option<Place>) -> i64 {
        let level = self.level(thread);
        let (pedigree, by_chance) = level.replayed();
        let miss = {
            let mut tape = lock(&self.tape);
            let Tape::Replayer(replayer) = &mut *tape else { return self.time.now().monotonic(0) };
            let (site, importing) = replayer.site(host, by_chance);
            match replayer.peek(pedigree, KIND, site, importing) {
                Ok(Value::Clock(value_ns)) => {
                    let basis = Basis { value_ns, elapsed_ns: self.time.elapsed() };
                    level.basis = Some(basis);
                    level.tentative = Some(Tentative { place, answer: Answer::Recorded { site, importing, basis } });
                    return value_ns;
                }
                Ok(_) => Miss::Mismatch,
                Err(miss) => miss,
            }
        };
        thread.missed = self.describe_miss(thread, host, miss, KIND.text(), None);
        let level = self.level(thread);
        let line = self.time.now();
        let value_ns = line.monotonic(level.ticks);
        level.basis = Some(Basis { value_ns, elapsed_ns: line.elapsed() });
        level.tentative = Some(Tentative { place, answer: Answer::Missed });
        value_ns
    }

    /// The thread asks for something else: what it read last was read by the program.
    #[inline]
    pub fn commit(&self, thread: &mut Thread, host: &dyn Host) {
        let level = self.level(thread);
        match &level.tentative {
            None => {}
            Some(Tentative { answer: Answer::Virtual, .. }) => {
                level.tentative = None;
                if self.count_reading(level, Clock::Monotonic) {
                    self.interrupt_spin(thread, host, Clock::Monotonic);
                }
            }
            Some(_) => self.commit_journaled(thread, host),
        }
    }

    #[inline(never)]
    fn commit_journaled(&self, thread: &mut Thread, host: &dyn Host) {
        let level = self.level(thread);
        let Some(Tentative { answer, .. }) = level.tentative.take() else { return };
        let mut tape = lock(&self.tape);
        match (answer, &mut *tape) {
            (Answer::Real { site, importing, value_ns }, Tape::Recorder(recorder)) => {
                let clock = hermetic_journal::Clock::Monotonic;
                recorder.append(&Event::Clock { thread: level.number, site, clock, value_ns, importing });
            }
            (Answer::Recorded { site, importing, basis }, Tape::Replayer(replayer)) => {
                let _ = replayer.next(level.replayed().0, KIND, site, importing);
                self.time.follow(Clock::Monotonic, basis);
            }
            (Answer::Missed, tape) => {
                level.ticks += 1;
                if let (Some(found), Tape::Replayer(replayer)) = (thread.missed.take(), tape) {
                    let is_strict = found.fatal != 0;
                    if is_strict {
                        replayer.diverge();
                        self.leave_order();
                    }
                    self.report(found, thread, host, is_strict);
                }
            }
            _ => {}
        }
    }

    /// As [`commit`](Sandbox::commit), for a thread that may never have taken part here: asking does not make it join.
    pub fn commit_known(&self, thread: &mut Thread, host: &dyn Host) {
        if self.is_known(thread) {
            self.commit(thread, host);
        }
    }

    /// The interpreter asks for a semaphore. If it does so where the thread read the clock last, the reading was for that: it
    /// is as if it had not been. A deadline that was computed from it counts from it all the same.
    #[inline]
    pub fn take_back(&self, thread: &mut Thread, host: &dyn Host) {
        let level = self.level(thread);
        let Some(tentative) = &level.tentative else { return };
        if tentative.place != host.place() {
            return self.commit(thread, host);
        }
        level.tentative = None;
        thread.missed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{BoxedSink, JournalFile};
    use crate::sandbox::{Journaling, Settings};
    use crate::thread::Class;
    use crate::time::Clockwork;
    use core::cell::Cell;
    use hermetic_abi::{finding, flag, PlaceText};
    use hermetic_journal::{Journal, Sink};
    use hermetic_model::clock::{MONOTONIC_ORIGIN_NS, NS_PER_SEC};
    use std::fmt::Write;

    const TICK_NS: i64 = 1_000;

    /// A thread of a host that is at some place, each place in a function of its own.
    struct At {
        offset: Cell<usize>,
        is_running: Cell<bool>,
        interruptions: Cell<i32>,
    }

    impl At {
        fn place(offset: usize) -> At {
            At { offset: Cell::new(offset), is_running: Cell::new(true), interruptions: Cell::new(0) }
        }
    }

    impl Host for At {
        fn is_known(&self) -> bool {
            true
        }

        fn is_running(&self) -> bool {
            self.is_running.get()
        }

        fn place(&self) -> Option<Place> {
            Some(Place { code: 1, offset: self.offset.get() })
        }

        fn describe(&self, place: Place, out: &mut PlaceText) -> bool {
            write!(out.function, "function_{}", place.offset).is_ok()
        }

        fn is_importing(&self) -> bool {
            false
        }

        fn interrupt(&self, _kind: u32) {
            self.interruptions.set(self.interruptions.get() + 1);
        }
    }

    /// A journal in memory.
    struct Memory(Vec<u8>);

    impl Sink for Memory {
        fn reserve(&mut self, end: usize) -> bool {
            Sink::reserve(&mut self.0, end)
        }

        fn write(&mut self, offset: usize, bytes: &[u8]) {
            Sink::write(&mut self.0, offset, bytes);
        }

        fn publish(&mut self, len: u64) {
            self.0.publish(len);
        }
    }

    impl JournalFile for Memory {
        fn path(&self) -> &[u8] {
            b""
        }

        fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    fn entered(journal: Journaling<'_>, spin_limit: u64, tick_ps: u64) -> (Sandbox, Thread) {
        let sandbox = Sandbox::new(0, Box::leak(Box::new(Clockwork::default())));
        let mut thread = Thread::new(Class::Foreign);
        let settings = Settings {
            flags: flag::CLOCK | flag::STRICT_REPLAY,
            seed: b"1",
            now_ns: 0,
            monotonic_ns: MONOTONIC_ORIGIN_NS,
            real_coarse_ns: 0,
            inherits: false,
            tick_ps,
            spin_limit,
            allow: "",
        };
        sandbox.enter(1, &settings, journal, &mut thread).expect("nothing to refuse");
        (sandbox, thread)
    }

    fn read(sandbox: &Sandbox, thread: &mut Thread, host: &At, offset: usize) -> i64 {
        host.offset.set(offset);
        sandbox.read_tentatively(thread, host, || 7 * NS_PER_SEC + offset as i64) - MONOTONIC_ORIGIN_NS
    }

    /// Takes a lock at that place, as the interpreter does.
    fn lock_at(sandbox: &Sandbox, thread: &mut Thread, host: &At, offset: usize) {
        read(sandbox, thread, host, offset);
        sandbox.take_back(thread, host);
    }

    #[test]
    fn locks_do_not_tick() {
        let (sandbox, mut thread) = entered(Journaling::None, 0, 1_000_000);
        let host = At::place(1);
        assert_eq!(read(&sandbox, &mut thread, &host, 1), 0);
        lock_at(&sandbox, &mut thread, &host, 2);
        lock_at(&sandbox, &mut thread, &host, 2);
        assert_eq!(read(&sandbox, &mut thread, &host, 1), TICK_NS);
        host.is_running.set(false);
        assert_eq!(read(&sandbox, &mut thread, &host, 2), 2 * TICK_NS, "the hand-off of the lock sees the next value");
        host.is_running.set(true);
        assert_eq!(read(&sandbox, &mut thread, &host, 1), 2 * TICK_NS, "and leaves it");
    }

    #[test]
    fn a_semaphore_that_is_asked_for_elsewhere_leaves_the_reading_to_the_program() {
        let (sandbox, mut thread) = entered(Journaling::None, 0, 1_000_000);
        let host = At::place(1);
        read(&sandbox, &mut thread, &host, 1);
        // Joining a thread waits for a semaphore and has read nothing.
        host.offset.set(2);
        sandbox.take_back(&mut thread, &host);
        sandbox.take_back(&mut thread, &host);
        assert_eq!(read(&sandbox, &mut thread, &host, 1), TICK_NS);
    }

    #[test]
    fn deadlines_count_from_readings_that_were_taken_back() {
        let (sandbox, mut thread) = entered(Journaling::None, 0, 1_000_000);
        let host = At::place(1);
        read(&sandbox, &mut thread, &host, 1);
        let deadline_ns = read(&sandbox, &mut thread, &host, 2) + MONOTONIC_ORIGIN_NS + 5 * NS_PER_SEC;
        sandbox.take_back(&mut thread, &host);
        let left_ns = sandbox.remaining(&mut thread, Clock::Monotonic, deadline_ns, || 0);
        assert_eq!(left_ns, Some(5 * NS_PER_SEC));
        sandbox.clock_advance(2 * NS_PER_SEC).expect("forward");
        let left_ns = sandbox.remaining(&mut thread, Clock::Monotonic, deadline_ns, || 0);
        assert_eq!(left_ns, Some(3 * NS_PER_SEC));
    }

    #[test]
    fn a_loop_that_spins_is_found_whether_it_prints_or_not() {
        for locks in [0, 1] {
            let (sandbox, mut thread) = entered(Journaling::None, 100, 0);
            let host = At::place(1);
            for _ in 0..102 {
                read(&sandbox, &mut thread, &host, 1);
                for _ in 0..locks {
                    lock_at(&sandbox, &mut thread, &host, 2);
                }
            }
            assert_eq!(host.interruptions.get(), 1, "{locks} locks");
        }
    }

    /// A test that reads the clock at places 1 and 3, and takes a lock at place 2 if it `prints`.
    fn run(journal: Journaling<'_>, prints: bool, extra: bool) -> (At, Sandbox, Option<BoxedSink>, Vec<i64>) {
        let (sandbox, mut thread) = entered(journal, 0, 1_000_000);
        let host = At::place(0);
        let mut seen = Vec::new();
        for offset in [1, 3] {
            seen.push(read(&sandbox, &mut thread, &host, offset));
            if prints {
                lock_at(&sandbox, &mut thread, &host, 2);
                lock_at(&sandbox, &mut thread, &host, offset);
            }
        }
        if extra {
            seen.push(read(&sandbox, &mut thread, &host, 4));
        }
        sandbox.commit(&mut thread, &host);
        let (_, sink) = sandbox.leave();
        (host, sandbox, sink, seen)
    }

    fn recorded(prints: bool) -> (BoxedSink, Vec<i64>) {
        let sink: BoxedSink = Box::new(Memory(Vec::new()));
        let (_, _, sink, seen) = run(Journaling::Record { sink, head: b"{}" }, prints, false);
        (sink.expect("a journal"), seen)
    }

    #[test]
    fn journals_are_the_same_with_and_without_locks() {
        let events = |prints| {
            let (sink, _) = recorded(prints);
            let journal = Journal::decode_raw(sink.bytes()).expect("readable");
            let text = |event: Event<'_>| match event {
                Event::Site { function, .. } => function.to_owned(),
                Event::Clock { value_ns, .. } => value_ns.to_string(),
                other => format!("{other:?}"),
            };
            journal.events().map(text).collect::<Vec<_>>()
        };
        assert_eq!(events(false), events(true));
        assert_eq!(events(true).len(), 4, "two readings and their places");
    }

    #[test]
    fn replay_does_not_care_for_locks() {
        for (recorded_locks, replayed_locks) in [(false, false), (false, true), (true, false), (true, true)] {
            let (journal, told) = recorded(recorded_locks);
            let (host, sandbox, _, seen) = run(Journaling::Replay { raw: journal.bytes() }, replayed_locks, false);
            assert_eq!(seen, told);
            assert_eq!(host.interruptions.get(), 0);
            assert!(sandbox.finding(0).is_none(), "{recorded_locks} {replayed_locks}");
        }
    }

    #[test]
    fn a_reading_too_many_is_interrupted_and_told_once() {
        let (journal, _) = recorded(false);
        let (host, sandbox, _, _) = run(Journaling::Replay { raw: journal.bytes() }, true, true);
        assert_eq!(host.interruptions.get(), 1);
        let found = sandbox.finding(0).expect("a finding");
        assert_eq!((found.kind, found.fatal, found.count), (finding::REPLAY_EXHAUSTED, 1, 1));
        assert!(found.message.as_str().contains("in function_4"), "{}", found.message.as_str());
        assert!(sandbox.finding(1).is_none());
    }

    #[test]
    fn what_comes_next_is_written_after_the_reading() {
        let sink: BoxedSink = Box::new(Memory(Vec::new()));
        let (sandbox, mut thread) = entered(Journaling::Record { sink, head: b"{}" }, 0, 0);
        let host = At::place(0);
        read(&sandbox, &mut thread, &host, 1);
        sandbox.record_listing(&mut thread, &host, b"a\0b");
        let (_, sink) = sandbox.leave();
        let journal = Journal::decode_raw(sink.expect("a journal").bytes()).expect("readable");
        let kinds: Vec<_> = journal.events().filter(|event| !matches!(event, Event::Site { .. })).collect();
        assert!(matches!(kinds[..], [Event::Clock { .. }, Event::Listing { .. }]), "{kinds:?}");
    }
}
