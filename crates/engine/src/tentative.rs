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
        let value_ns = real().saturating_add(self.time.now().monotonic(0));
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let (site, importing) = recorder.site(host);
            level.tentative = Some(Tentative { place, answer: Answer::Real { site, importing, value_ns } });
        }
        value_ns
    }

    fn replay_tentatively(&self, thread: &mut Thread, host: &dyn Host, place: Option<Place>) -> i64 {
        let level = self.level(thread);
        let pedigree = level.pedigree;
        let miss = {
            let mut tape = lock(&self.tape);
            let Tape::Replayer(replayer) = &mut *tape else { return self.time.now().monotonic(0) };
            let (site, importing) = replayer.site(host);
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
        if let Some(found) = &thread.missed {
            if found.fatal != 0 {
                // Now, and not when the thread asks for something else: a test that computes on must not get far.
                thread.interrupt = found.message.clone();
                host.interrupt(found.kind);
            }
        }
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
        match level.tentative.take() {
            None => {}
            Some(Tentative { answer: Answer::Virtual, .. }) if self.count_reading(level, Clock::Monotonic) => {
                self.interrupt_spin(thread, host, Clock::Monotonic);
            }
            Some(Tentative { answer: Answer::Virtual, .. }) => {}
            Some(Tentative { answer, .. }) => self.commit_journaled(thread, answer),
        }
    }

    #[cold]
    fn commit_journaled(&self, thread: &mut Thread, answer: Answer) {
        let level = self.level(thread);
        let mut tape = lock(&self.tape);
        match (answer, &mut *tape) {
            (Answer::Real { site, importing, value_ns }, Tape::Recorder(recorder)) => {
                let clock = hermetic_journal::Clock::Monotonic;
                recorder.append(&Event::Clock { thread: level.number, site, clock, value_ns, importing });
            }
            (Answer::Recorded { site, importing, basis }, Tape::Replayer(replayer)) => {
                let _ = replayer.next(level.pedigree, KIND, site, importing);
                self.time.follow(Clock::Monotonic, basis);
            }
            (Answer::Missed, tape) => {
                level.ticks += 1;
                if let (Some(found), Tape::Replayer(replayer)) = (thread.missed.take(), tape) {
                    if found.fatal != 0 {
                        replayer.diverge();
                    }
                    lock(&self.findings).add(&found);
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
        if thread.missed.take().is_some_and(|found| found.fatal != 0) {
            host.withdraw();
        }
    }
}
