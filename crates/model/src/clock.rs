//! Virtual clocks: where they start, how they move, and how nanoseconds become what C calls time.
//!
//! A [`Timeline`] is a value. Wall and monotonic time share one elapsed span, which waiting and `advance` move; `set` moves
//! the wall clock alone. Readings tick: the caller counts readings per thread and passes the count in, so a thread's clock
//! does not depend on how often other threads looked at theirs. All arithmetic saturates: time stops at the end of 64-bit
//! nanoseconds instead of running backwards.

use core::fmt;

pub const NS_PER_SEC: i64 = 1_000_000_000;
pub const NS_PER_MS: i64 = 1_000_000;
pub const NS_PER_US: i64 = 1_000;
pub const PS_PER_NS: u64 = 1_000;

/// Where a fixed monotonic clock starts: 1000 seconds, so that code which subtracts small spans stays positive.
pub const MONOTONIC_ORIGIN_NS: i64 = 1000 * NS_PER_SEC;
/// Where the clock of processor time starts.
pub const CPU_ORIGIN_NS: i64 = 0;
/// The default wall clock: 2020-01-01T00:00:00Z.
pub const DEFAULT_NOW_NS: i64 = 1_577_836_800 * NS_PER_SEC;
/// How far monotonic clocks move per reading by default: 1 µs, in picoseconds.
pub const DEFAULT_TICK_PS: u64 = 1_000_000;

/// The clocks that a program can read. The numbers are those of the C ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum Clock {
    /// Time since the Unix epoch: frozen, moved by waiting, `advance` and `set`.
    Wall = 0,
    /// Time since an arbitrary origin: never goes back, ticks with each reading.
    Monotonic = 1,
    /// Processor time: ticks with each reading, is not moved by waiting.
    Cpu = 2,
}

impl Clock {
    pub const ALL: [Clock; 3] = [Clock::Wall, Clock::Monotonic, Clock::Cpu];

    /// The clock with that number, if there is one.
    pub fn from_i32(number: i32) -> Option<Clock> {
        Clock::ALL.into_iter().find(|clock| *clock as i32 == number)
    }
}

/// A move of a clock that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveError {
    /// Clocks do not go back; set the wall clock instead.
    Negative { ns: i64 },
    /// The clock would leave 64-bit nanoseconds.
    OutOfRange { ns: i64 },
}

impl fmt::Display for MoveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveError::Negative { ns } => {
                write!(out, "cannot advance the clock by {ns} ns: accepted are spans of 0 or more; use set to go back")
            }
            MoveError::OutOfRange { ns } => {
                write!(out, "cannot advance the clock by {ns} ns: it would pass the year 2262, the end of 64-bit time")
            }
        }
    }
}

impl core::error::Error for MoveError {}

/// The clocks of one sandbox.
///
/// ```
/// use hermetic_model::clock::{Timeline, DEFAULT_NOW_NS, DEFAULT_TICK_PS, MONOTONIC_ORIGIN_NS, NS_PER_SEC};
/// let mut time = Timeline::new(DEFAULT_NOW_NS, MONOTONIC_ORIGIN_NS, DEFAULT_TICK_PS);
/// time.sleep(2 * NS_PER_SEC);
/// assert_eq!(time.wall(), DEFAULT_NOW_NS + 2 * NS_PER_SEC);
/// assert_eq!(time.monotonic(3), MONOTONIC_ORIGIN_NS + 2 * NS_PER_SEC + 3_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    wall_base_ns: i64,
    monotonic_origin_ns: i64,
    elapsed_ns: i64,
    tick_ps: u64,
}

impl Timeline {
    /// Clocks that have not moved yet: wall at `now_ns` since the epoch, monotonic at `monotonic_origin_ns`.
    pub const fn new(now_ns: i64, monotonic_origin_ns: i64, tick_ps: u64) -> Timeline {
        Timeline { wall_base_ns: now_ns, monotonic_origin_ns, elapsed_ns: 0, tick_ps }
    }

    /// The wall clock, nanoseconds since the Unix epoch. Does not tick.
    #[inline]
    pub const fn wall(&self) -> i64 {
        self.wall_base_ns.saturating_add(self.elapsed_ns)
    }

    /// The monotonic clock of a thread after `ticks` readings.
    #[inline]
    pub const fn monotonic(&self, ticks: u64) -> i64 {
        self.monotonic_origin_ns.saturating_add(self.elapsed_ns).saturating_add(self.ticked_ns(ticks))
    }

    /// The processor time of a thread after `ticks` readings. Waiting costs no processor time.
    #[inline]
    pub const fn cpu(&self, ticks: u64) -> i64 {
        CPU_ORIGIN_NS.saturating_add(self.ticked_ns(ticks))
    }

    /// Any of the clocks.
    #[inline]
    pub const fn read(&self, clock: Clock, ticks: u64) -> i64 {
        match clock {
            Clock::Wall => self.wall(),
            Clock::Monotonic => self.monotonic(ticks),
            Clock::Cpu => self.cpu(ticks),
        }
    }

    /// Nanoseconds that waiting and `advance` have moved the clocks since the start.
    pub const fn elapsed(&self) -> i64 {
        self.elapsed_ns
    }

    pub const fn tick_ps(&self) -> u64 {
        self.tick_ps
    }

    /// What `ticks` readings amount to, in whole nanoseconds.
    #[inline]
    pub const fn ticked_ns(&self, ticks: u64) -> i64 {
        match ticks.checked_mul(self.tick_ps) {
            // A quotient of a u64 by 1000 fits an i64.
            Some(ticked_ps) => (ticked_ps / PS_PER_NS) as i64,
            None => {
                let ticked_ns = (ticks as u128 * self.tick_ps as u128) / PS_PER_NS as u128;
                if ticked_ns > i64::MAX as u128 {
                    i64::MAX
                } else {
                    ticked_ns as i64
                }
            }
        }
    }

    /// Moves all clocks on, as `advance` of the handle does.
    pub const fn advance(&mut self, ns: i64) -> Result<(), MoveError> {
        if ns < 0 {
            return Err(MoveError::Negative { ns });
        }
        let Some(elapsed_ns) = self.elapsed_ns.checked_add(ns) else {
            return Err(MoveError::OutOfRange { ns });
        };
        if self.wall_base_ns.checked_add(elapsed_ns).is_none()
            || self.monotonic_origin_ns.checked_add(elapsed_ns).is_none()
        {
            return Err(MoveError::OutOfRange { ns });
        }
        self.elapsed_ns = elapsed_ns;
        Ok(())
    }

    /// Moves all clocks on by a wait. Waits cannot fail: a negative one is none, an endless one ends at the end of time.
    pub const fn sleep(&mut self, ns: i64) {
        if ns > 0 {
            self.elapsed_ns = self.elapsed_ns.saturating_add(ns);
        }
    }

    /// Moves all clocks on until `clock` of a thread with `ticks` readings shows `deadline_ns`, if it does not yet.
    /// Returns how far they moved.
    pub const fn sleep_until(&mut self, clock: Clock, ticks: u64, deadline_ns: i64) -> i64 {
        let ns = remaining(deadline_ns, self.read(clock, ticks));
        self.sleep(ns);
        ns
    }

    /// Sets the wall clock, forwards or back; the others stay.
    pub const fn set_wall(&mut self, ns: i64) {
        self.wall_base_ns = ns.saturating_sub(self.elapsed_ns);
    }
}

/// Nanoseconds until a deadline; 0 once it has passed.
#[inline]
pub const fn remaining(deadline_ns: i64, now_ns: i64) -> i64 {
    let left = deadline_ns.saturating_sub(now_ns);
    if left > 0 {
        left
    } else {
        0
    }
}

/// The deadline of a wait that starts now. Saturates, so an endless wait has a deadline at the end of time.
#[inline]
pub const fn deadline(now_ns: i64, timeout_ns: i64) -> i64 {
    now_ns.saturating_add(timeout_ns)
}

/// Splits into whole seconds (rounded down, also before 1970) and the nanoseconds 0..1e9 that `tv_nsec` wants.
///
/// ```
/// assert_eq!(hermetic_model::clock::to_timespec(-1), (-1, 999_999_999));
/// ```
#[inline]
pub const fn to_timespec(ns: i64) -> (i64, i64) {
    (ns.div_euclid(NS_PER_SEC), ns.rem_euclid(NS_PER_SEC))
}

/// As [`to_timespec`], in microseconds, rounded down.
#[inline]
pub const fn to_timeval(ns: i64) -> (i64, i64) {
    let (sec, nsec) = to_timespec(ns);
    (sec, nsec / NS_PER_US)
}

/// Nanoseconds of a `timespec`. None where the kernel would answer EINVAL: `tv_nsec` outside 0..1e9. Saturates.
#[inline]
pub const fn from_timespec(sec: i64, nsec: i64) -> Option<i64> {
    if nsec < 0 || nsec >= NS_PER_SEC {
        return None;
    }
    Some(join(sec, nsec))
}

/// Nanoseconds of a `timespec` that is a span: as [`from_timespec`], and None also for negative seconds.
#[inline]
pub const fn span_from_timespec(sec: i64, nsec: i64) -> Option<i64> {
    if sec < 0 {
        return None;
    }
    from_timespec(sec, nsec)
}

/// Nanoseconds of a `timeval`. None where `tv_usec` lies outside 0..1e6. Saturates.
#[inline]
pub const fn from_timeval(sec: i64, usec: i64) -> Option<i64> {
    if usec < 0 || usec >= NS_PER_SEC / NS_PER_US {
        return None;
    }
    Some(join(sec, usec * NS_PER_US))
}

/// Nanoseconds of a `poll` time-out in milliseconds. None means "without end" (a negative value).
#[inline]
pub const fn from_poll_timeout(ms: i32) -> Option<i64> {
    if ms < 0 {
        return None;
    }
    Some(ms as i64 * NS_PER_MS)
}

/// The `poll` time-out that lasts at least `ns`, rounded up so that a wait does not end just before its deadline.
#[inline]
pub const fn to_poll_timeout(ns: i64) -> i32 {
    if ns <= 0 {
        return 0;
    }
    let ms = (ns - 1) / NS_PER_MS + 1;
    if ms > i32::MAX as i64 {
        i32::MAX
    } else {
        ms as i32
    }
}

const fn join(sec: i64, nsec: i64) -> i64 {
    // In 128 bits, because -1 s saturated before adding the fraction would round the wrong way at the very ends.
    let total = sec as i128 * NS_PER_SEC as i128 + nsec as i128;
    if total > i64::MAX as i128 {
        i64::MAX
    } else if total < i64::MIN as i128 {
        i64::MIN
    } else {
        total as i64
    }
}
