//! Clocks and waits.
//!
//! One timeline per sandbox, in atomics, because reading a clock must cost next to nothing: wall and monotonic time share
//! the elapsed span, which waits and `advance` move. Readings of the monotonic clock tick for the reading thread only.

use crate::finding::blank;
use crate::host::Host;
use crate::replayer::{Kind, Miss, Value};
use crate::sandbox::{lock, Mode, Sandbox, Settings, Tape};
use crate::thread::{Basis, Level, Thread};
use crate::waits::Pace;
use hermetic_abi::{finding, Finding};
use hermetic_journal::{Event, Reason};
use hermetic_model::clock::{Clock, Timeline};
use std::fmt::Write;
use std::sync::atomic::{fence, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The moving parts of the clocks. All processes of a sandbox share them, so they may lie in shared memory; all-zero bytes
/// are valid.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Clockwork {
    wall_base_ns: AtomicI64,
    monotonic_origin_ns: AtomicI64,
    elapsed_ns: AtomicI64,
    tick_ps: AtomicU64,
    /// How often time moved otherwise than by ticks.
    moves: AtomicU64,
}

impl Clockwork {
    /// Nanoseconds that passed otherwise than by ticks.
    pub fn elapsed(&self) -> i64 {
        self.elapsed_ns.load(Ordering::Acquire)
    }

    /// What the wall clock shows, in nanoseconds since the Unix epoch.
    pub fn wall(&self) -> i64 {
        self.wall_base_ns.load(Ordering::Relaxed).saturating_add(self.elapsed())
    }

    /// As [`Clockwork::wall`], for who only watches: never half of one move and half of another.
    pub fn steady_wall(&self) -> i64 {
        // A clock that moves all the time is told as it is after this many looks.
        for _ in 0..100 {
            let moves = self.moves.load(Ordering::Acquire);
            let wall_ns = self.wall();
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) == moves {
                return wall_ns;
            }
        }
        self.wall()
    }

    /// Moves on to where `target` nanoseconds have elapsed, if that is not behind.
    pub fn advance_to(&self, target_ns: i64) {
        self.elapsed_ns.fetch_max(target_ns, Ordering::AcqRel);
        self.moves.fetch_add(1, Ordering::Release);
    }
}

/// The clocks of a sandbox, as one process sees them.
pub struct Timekeeper {
    shared: &'static Clockwork,
    spin_limit: AtomicU64,
    /// Which virtual moment belonged to which real one, for the times of files.
    history: Mutex<History>,
}

/// Moves of the wall clock by the real time at which they happened, oldest first.
#[derive(Default)]
struct History {
    moves: Vec<Moment>,
}

#[derive(Clone, Copy)]
struct Moment {
    real_ns: i64,
    wall_ns: i64,
}

/// Moves remembered for file times. When they are used up every second one is forgotten: older stamps get coarser.
const MOMENTS_MAX: usize = 4096;

impl History {
    fn begin(&mut self, moment: Moment) {
        // Taken once, when the sandbox is entered for the first time; hooks only push.
        self.moves.reserve(MOMENTS_MAX);
        self.moves.clear();
        self.moves.push(moment);
    }

    fn push(&mut self, moment: Moment) {
        match self.moves.last_mut() {
            // Kernel stamps are as coarse as this reading: of several moves within one tick the last counts.
            Some(last) if last.real_ns >= moment.real_ns => last.wall_ns = moment.wall_ns,
            _ => {
                if self.moves.len() == MOMENTS_MAX {
                    let mut index = 0;
                    self.moves.retain(|_| {
                        index += 1;
                        index % 2 == 1
                    });
                }
                self.moves.push(moment);
            }
        }
    }

    /// The virtual moment of a real stamp; none if it is from before the sandbox.
    fn wall_at(&self, real_ns: i64) -> Option<i64> {
        let after = self.moves.partition_point(|moment| moment.real_ns <= real_ns);
        after.checked_sub(1).map(|index| self.moves[index].wall_ns)
    }
}

/// The lock of a timekeeper, held over a fork.
#[allow(dead_code, reason = "held, not read")]
pub struct Held<'a>(MutexGuard<'a, History>);

impl Timekeeper {
    pub(crate) fn new(shared: &'static Clockwork) -> Timekeeper {
        Timekeeper { shared, spin_limit: AtomicU64::new(0), history: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> Held<'_> {
        Held(lock(&self.history))
    }

    pub(crate) fn reset(&self, settings: &Settings<'_>, mode: Mode) {
        // While recording, the bases are what `advance` and `set` add to the real clocks.
        let (wall, monotonic) = if mode == Mode::Record { (0, 0) } else { (settings.now_ns, settings.monotonic_ns) };
        if !settings.inherits {
            let shared = self.shared;
            shared.wall_base_ns.store(wall, Ordering::Relaxed);
            shared.monotonic_origin_ns.store(monotonic, Ordering::Relaxed);
            shared.elapsed_ns.store(0, Ordering::Relaxed);
            shared.tick_ps.store(settings.tick_ps, Ordering::Relaxed);
            shared.moves.fetch_add(1, Ordering::Relaxed);
        }
        let spins = if mode == Mode::Virtual { settings.spin_limit } else { 0 };
        self.spin_limit.store(spins, Ordering::Relaxed);
        lock(&self.history).begin(Moment { real_ns: settings.real_coarse_ns, wall_ns: wall });
    }

    /// Remembers that the wall clock has moved just now.
    pub fn note_move(&self, real_coarse_ns: i64) {
        lock(&self.history).push(Moment { real_ns: real_coarse_ns, wall_ns: self.now().wall() });
    }

    /// The timeline of this moment.
    #[inline]
    pub(crate) fn now(&self) -> Timeline {
        let mut line = Timeline::new(
            self.shared.wall_base_ns.load(Ordering::Relaxed),
            self.shared.monotonic_origin_ns.load(Ordering::Relaxed),
            self.shared.tick_ps.load(Ordering::Relaxed),
        );
        line.sleep(self.shared.elapsed_ns.load(Ordering::Relaxed));
        line
    }

    /// Nanoseconds that passed otherwise than by ticks.
    pub fn elapsed(&self) -> i64 {
        self.shared.elapsed()
    }

    fn advance(&self, ns: i64) {
        let add = |elapsed: i64| Some(elapsed.saturating_add(ns.max(0)));
        let _ = self.shared.elapsed_ns.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add);
        self.shared.moves.fetch_add(1, Ordering::Release);
    }

    fn set_wall(&self, ns: i64) {
        self.shared.wall_base_ns.store(ns.saturating_sub(self.elapsed()), Ordering::Relaxed);
        self.shared.moves.fetch_add(1, Ordering::Release);
    }

    /// Makes the clock show what the journal said, so that whoever must be answered without it continues from there.
    pub(crate) fn follow(&self, clock: Clock, told: Basis) {
        let base = told.value_ns.saturating_sub(told.elapsed_ns);
        match clock {
            Clock::Wall => self.shared.wall_base_ns.store(base, Ordering::Relaxed),
            Clock::Monotonic => self.shared.monotonic_origin_ns.store(base, Ordering::Relaxed),
            Clock::Cpu => {}
        }
    }
}

/// How a wait is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It is over: time has moved.
    Over,
    /// It must really be made.
    Real,
}

impl Sandbox {
    /// What a clock shows to this thread. `real` is asked only where the answer must be real.
    #[inline]
    pub fn read_clock(&self, thread: &mut Thread, host: &dyn Host, clock: Clock, real: impl FnOnce() -> i64) -> i64 {
        self.commit(thread, host);
        let mode = self.clock_mode();
        if mode == Mode::Virtual {
            let level = self.level(thread);
            let line = self.time.now();
            let value = line.read(clock, level.ticks);
            if clock == Clock::Monotonic {
                level.basis = Some(Basis { value_ns: value, elapsed_ns: line.elapsed() });
            }
            if self.count_reading(level, clock) {
                self.interrupt_spin(thread, host, clock);
            }
            return value;
        }
        self.read_journaled(thread, host, clock, mode, real)
    }

    /// How far the thread's clock has ticked; 0 for one that has asked for nothing yet.
    pub fn ticks(&self, thread: &mut Thread) -> u64 {
        if !self.is_known(thread) {
            return 0;
        }
        let level = self.level(thread);
        level.ticks + u64::from(level.tentative.is_some())
    }

    /// Another thread, whose clock has ticked that far, woke this one: what it reads from now on is no earlier than what the other
    /// has read. Programs rely on that, for example where one thread finds a timer due and wakes another that looks again.
    pub fn catch_up(&self, thread: &mut Thread, ticks: u64) {
        let level = self.level(thread);
        level.ticks = level.ticks.max(ticks);
    }

    /// What a clock shows, for one who is no part of the test: nothing ticks, nothing is written down.
    #[inline]
    pub fn peek_clock(&self, thread: &mut Thread, clock: Clock, real: impl FnOnce() -> i64) -> i64 {
        let level = self.level(thread);
        let ticks = level.ticks + u64::from(level.tentative.is_some());
        let line = self.time.now();
        match self.clock_mode() {
            Mode::Off => real(),
            Mode::Record if clock == Clock::Cpu => real(),
            Mode::Record => real().saturating_add(line.read(clock, 0)),
            Mode::Virtual | Mode::Replay => line.read(clock, ticks),
        }
    }

    /// Counts a reading; true when the thread has been spinning for too long.
    #[inline]
    pub(crate) fn count_reading(&self, level: &mut Level, clock: Clock) -> bool {
        if clock != Clock::Wall {
            level.ticks += 1;
            if self.time.shared.tick_ps.load(Ordering::Relaxed) != 0 {
                // Time has moved for this thread.
                level.still = 0;
                return false;
            }
        }
        let moves = self.time.shared.moves.load(Ordering::Relaxed);
        if level.moves_seen != moves {
            level.moves_seen = moves;
            level.still = 0;
        }
        level.still += 1;
        let limit = self.time.spin_limit.load(Ordering::Relaxed);
        limit != 0 && level.still > limit
    }

    #[cold]
    pub(crate) fn interrupt_spin(&self, thread: &mut Thread, host: &dyn Host, clock: Clock) {
        let level = self.level(thread);
        let count = std::mem::take(&mut level.still);
        let name = if clock == Clock::Wall { "wall" } else { "monotonic" };
        let mut found = blank(finding::SPIN, true);
        let _ = write!(
            found.message,
            "a thread read the frozen {name} clock {count} times while nothing moved it: it waits for a moment that never \
             comes. Sleep in the loop, move the clock with sb.clock.advance(), or raise spin_limit (0 switches this off)"
        );
        self.report(found, thread, host, true);
    }

    /// All threads wait for each other: the calling one is coming back from its wait to be told.
    pub fn report_deadlock(&self, thread: &mut Thread, host: &dyn Host) {
        let mut found = blank(finding::DEADLOCK, true);
        let _ = found.message.write_str(
            "every thread of the sandbox waits, none of them for a time, and nothing outside can answer: nobody will ever go \
             on. Look for a lock that is taken twice, an event that nobody sets, a queue that nobody fills",
        );
        thread.interrupt = found.message.clone();
        self.report(found, thread, host, false);
        // The thread does not run host code yet: it is told at its next opportunity.
        host.interrupt(finding::DEADLOCK);
    }

    fn read_journaled(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        clock: Clock,
        mode: Mode,
        real: impl FnOnce() -> i64,
    ) -> i64 {
        match mode {
            Mode::Record => self.record_reading(thread, host, clock, real),
            Mode::Replay => self.replay_reading(thread, host, clock),
            Mode::Off | Mode::Virtual => real(),
        }
    }

    #[inline]
    fn record_reading(&self, thread: &mut Thread, host: &dyn Host, clock: Clock, real: impl FnOnce() -> i64) -> i64 {
        let (number, by_chance) = self.level(thread).voice();
        let shift = if clock == Clock::Cpu { 0 } else { self.time.now().read(clock, 0) };
        let mut tape = lock(&self.tape);
        let value_ns = real().saturating_add(shift);
        if let Tape::Recorder(recorder) = &mut *tape {
            let (site, importing) = recorder.site(host, by_chance);
            recorder.append(&Event::Clock { thread: number, site, clock: journal_clock(clock), value_ns, importing });
        }
        value_ns
    }

    fn replay_reading(&self, thread: &mut Thread, host: &dyn Host, clock: Clock) -> i64 {
        let level = self.level(thread);
        let (pedigree, by_chance) = level.replayed();
        let kind = Kind::Clock(journal_clock(clock));
        let miss = {
            let mut tape = lock(&self.tape);
            let Tape::Replayer(replayer) = &mut *tape else { return self.time.now().read(clock, 0) };
            let (site, importing) = replayer.site(host, by_chance);
            match replayer.next(pedigree, kind, site, importing) {
                Ok(Value::Clock(value_ns)) => {
                    let told = Basis { value_ns, elapsed_ns: self.time.elapsed() };
                    if clock == Clock::Monotonic {
                        level.basis = Some(told);
                    }
                    self.time.follow(clock, told);
                    return value_ns;
                }
                Ok(_) => Miss::Mismatch,
                Err(miss) => miss,
            }
        };
        self.diverge(thread, host, miss, kind.text(), None);
        let level = self.level(thread);
        level.ticks += 1;
        self.time.now().read(clock, level.ticks)
    }

    /// The journal has no answer: notes it, and interrupts where replay is strict.
    pub(crate) fn diverge(&self, thread: &mut Thread, host: &dyn Host, miss: Miss, asked: &str, detail: Option<usize>) {
        let Some(found) = self.describe_miss(thread, host, miss, asked, detail) else { return };
        let is_strict = found.fatal != 0;
        if let (true, Tape::Replayer(replayer)) = (is_strict, &mut *lock(&self.tape)) {
            replayer.diverge();
            self.leave_order();
        }
        self.report(found, thread, host, is_strict);
    }

    /// What there is to tell of a question that the journal has no answer for; none where that is no difference.
    pub(crate) fn describe_miss(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        miss: Miss,
        asked: &str,
        detail: Option<usize>,
    ) -> Option<Finding> {
        let kind = match miss {
            Miss::Importing | Miss::Diverged => return None,
            Miss::Exhausted => finding::REPLAY_EXHAUSTED,
            Miss::Mismatch => finding::REPLAY_MISMATCH,
        };
        let level = self.level(thread);
        let (pedigree, number) = (level.pedigree, level.number);
        let mut found = blank(kind, self.is_strict());
        let _ = write!(found.message, "the test asked for {asked}");
        if let Some(len) = detail {
            let _ = write!(found.message, " ({len} bytes)");
        }
        crate::sandbox::write_site(host, &mut found.site);
        if !found.site.as_str().is_empty() {
            let _ = write!(found.message, " at {}", found.site.as_str());
        }
        if number != 0 {
            let _ = write!(found.message, " (thread {number})");
        }
        found.message.write_str("; the journal has next: ").unwrap_or_default();
        if let Tape::Replayer(replayer) = &mut *lock(&self.tape) {
            let _ = replayer.write_expected(pedigree, &mut found.message);
        }
        // Without strictness one finding per kind of question is enough.
        let _ = found.subject.write_str(asked);
        Some(found)
    }

    /// A wait of `ns` nanoseconds that nothing but time can end.
    pub fn sleep(&self, thread: &mut Thread, host: &dyn Host, ns: i64) -> Wait {
        self.commit(thread, host);
        match self.pace() {
            Pace::Off | Pace::Real => Wait::Real,
            Pace::Virtual | Pace::Recorded => {
                self.time.advance(ns);
                Wait::Over
            }
        }
    }

    /// How long a wait must last really, whose deadline a virtual clock gave. None: the clocks are real, use it as it is.
    ///
    /// A deadline is a reading plus a span. It counts from that reading, the thread's last, and not from the next one, which
    /// will have ticked: a sleep of three seconds moves the clock by three seconds.
    pub fn remaining(
        &self,
        thread: &mut Thread,
        clock: Clock,
        deadline_ns: i64,
        real: impl FnOnce() -> i64,
    ) -> Option<i64> {
        let now_ns = match self.clock_mode() {
            Mode::Off => return None,
            Mode::Record => self.peek_clock(thread, clock, real),
            Mode::Virtual | Mode::Replay => {
                let level = self.level(thread);
                match level.basis {
                    Some(Basis { value_ns, elapsed_ns }) if clock == Clock::Monotonic => {
                        value_ns.saturating_add(self.time.elapsed().saturating_sub(elapsed_ns))
                    }
                    _ => self.time.now().read(clock, level.ticks.saturating_sub(1)),
                }
            }
        };
        Some(hermetic_model::clock::remaining(deadline_ns, now_ns))
    }

    /// Notes, for the times of files, that a wait or the handle has moved time. `real_coarse_ns` is the kernel's coarse wall
    /// clock, the one that it stamps files with.
    pub fn note_move(&self, real_coarse_ns: i64) {
        if matches!(self.clock_mode(), Mode::Virtual | Mode::Replay) {
            self.time.note_move(real_coarse_ns);
        }
    }

    /// What a file's time stamp is inside: stamps from before the sandbox are left alone.
    pub fn file_time(&self, real_ns: i64) -> i64 {
        match self.clock_mode() {
            Mode::Virtual | Mode::Replay => lock(&self.time.history).wall_at(real_ns).unwrap_or(real_ns),
            Mode::Off | Mode::Record => real_ns,
        }
    }

    /// Time to report from, when a wait begins.
    pub fn wait_begin(&self) -> i64 {
        self.time.elapsed()
    }

    /// A wait that began at `begin` timed out after `ns`: time is at least that far now.
    pub fn wait_timed_out(&self, begin: i64, ns: i64) {
        if matches!(self.clock_mode(), Mode::Virtual | Mode::Replay) {
            self.time.shared.advance_to(begin.saturating_add(ns.max(0)));
        }
    }

    /// Moves all clocks on, for the handle.
    pub fn clock_advance(&self, ns: i64) -> Result<(), hermetic_model::clock::MoveError> {
        self.time.now().advance(ns)?;
        self.time.advance(ns);
        self.record_move(Reason::Advance);
        Ok(())
    }

    /// Sets the wall clock, for the handle.
    pub fn clock_set(&self, ns: i64, real: impl FnOnce() -> i64) {
        let shift = if self.clock_mode() == Mode::Record { real() } else { 0 };
        self.time.set_wall(ns.saturating_sub(shift));
        self.record_move(Reason::Set);
    }

    /// Writes into the journal that the wait of a thread was ended by time.
    pub fn record_jump(&self, thread: &mut Thread, host: &dyn Host, reason: Reason) {
        let number = self.level(thread).number;
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let (site, _) = recorder.site(host, false);
            let to_ns = self.time.now().wall();
            recorder.append(&Event::Jump { thread: number, site, to_ns, reason });
        }
    }

    fn record_move(&self, reason: Reason) {
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let to_ns = self.time.now().wall();
            recorder.append(&Event::Jump { thread: 0, site: crate::sites::NATIVE, to_ns, reason });
        }
    }
}

fn journal_clock(clock: Clock) -> hermetic_journal::Clock {
    match clock {
        Clock::Wall => hermetic_journal::Clock::Wall,
        Clock::Monotonic => hermetic_journal::Clock::Monotonic,
        Clock::Cpu => hermetic_journal::Clock::Cpu,
    }
}
