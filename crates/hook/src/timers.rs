//! Timers that are descriptors (`timerfd`), on virtual time.
//!
//! A timer that a thread of the sandbox arms is disarmed in the kernel and stands here with the moment at which it is due. Whoever
//! waits for descriptors waits at most until the earliest of them; when time has come that far, the kernel's timer is made to
//! expire at once, so that the descriptor becomes readable wherever it is watched: in `poll`, in an epoll set, in a read. Timers
//! that were armed outside count real time, and those inside count it again when the sandbox is left.

use crate::parking;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use hermetic_engine::scheduler::NEVER;
use hermetic_model::clock;
use libc::{itimerspec, timespec};

/// Timers that are known at the same time; further ones count real time.
const TIMERS_MAX: usize = 64;

struct Timer {
    /// The descriptor plus one; 0 for a free place.
    fd: AtomicI32,
    clock: AtomicI32,
    /// Of the sandbox that the rest belongs to.
    generation: AtomicU64,
    /// In virtual time that has passed.
    due_ns: AtomicI64,
    interval_ns: AtomicI64,
    /// How often it has expired since it was read.
    expired: AtomicU64,
}

static TIMERS: [Timer; TIMERS_MAX] = [const {
    Timer {
        fd: AtomicI32::new(0),
        clock: AtomicI32::new(0),
        generation: AtomicU64::new(0),
        due_ns: AtomicI64::new(NEVER),
        interval_ns: AtomicI64::new(0),
        expired: AtomicU64::new(0),
    }
}; TIMERS_MAX];

/// How many are known: nobody looks while there are none.
static KNOWN: AtomicU32 = AtomicU32::new(0);

/// What a program asked of a timer, in nanoseconds; and what it is told of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Until it is due; 0 for a timer that is not armed.
    pub left_ns: i64,
    pub interval_ns: i64,
}

impl Setting {
    /// None for what the kernel will refuse.
    pub fn read(raw: &itimerspec) -> Option<Setting> {
        let ns = |time: timespec| clock::span_from_timespec(time.tv_sec, time.tv_nsec);
        Some(Setting { left_ns: ns(raw.it_value)?, interval_ns: ns(raw.it_interval)? })
    }

    pub fn write(&self) -> itimerspec {
        let raw = |ns: i64| {
            let (tv_sec, tv_nsec) = clock::to_timespec(ns);
            timespec { tv_sec, tv_nsec }
        };
        itimerspec { it_value: raw(self.left_ns), it_interval: raw(self.interval_ns) }
    }
}

/// A new timer.
pub fn note(fd: c_int, clock: c_int) {
    let is_free = |timer: &&Timer| timer.fd.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(timer) = TIMERS.iter().find(is_free) else { return };
    timer.clock.store(clock, Ordering::Relaxed);
    timer.due_ns.store(NEVER, Ordering::Relaxed);
    timer.expired.store(0, Ordering::Relaxed);
    KNOWN.fetch_add(1, Ordering::AcqRel);
    timer.fd.store(fd + 1, Ordering::Release);
}

/// The descriptor is closed.
#[inline]
pub fn forget(fd: c_int) {
    if let Some(timer) = find(fd) {
        timer.due_ns.store(NEVER, Ordering::Relaxed);
        timer.fd.store(0, Ordering::Release);
        KNOWN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// In a forked child: the timers are the parent's, which makes them expire for both.
pub fn forget_all() {
    for timer in &TIMERS {
        timer.fd.store(0, Ordering::Relaxed);
    }
    KNOWN.store(0, Ordering::Relaxed);
}

#[inline]
fn find(fd: c_int) -> Option<&'static Timer> {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    TIMERS.iter().find(|timer| timer.fd.load(Ordering::Acquire) == fd + 1)
}

#[inline]
pub fn is_known(fd: c_int) -> bool {
    find(fd).is_some()
}

/// The clock that the timer counts on.
pub fn clock_of(fd: c_int) -> Option<c_int> {
    Some(find(fd)?.clock.load(Ordering::Relaxed))
}

/// The sandbox of the moment and the virtual time that has passed in it.
fn now() -> Option<(u64, i64)> {
    let page = parking::page_now()?;
    Some((page.generation.load(Ordering::Acquire), page.front.clockwork.elapsed()))
}

impl Timer {
    fn is_of(&self, generation: u64) -> bool {
        self.fd.load(Ordering::Acquire) > 0 && self.generation.load(Ordering::Relaxed) == generation
    }

    fn setting(&self, elapsed_ns: i64) -> Setting {
        let due_ns = self.due_ns.load(Ordering::Acquire);
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        let left_ns = if due_ns == NEVER { 0 } else { due_ns.saturating_sub(elapsed_ns).max(1) };
        Setting { left_ns, interval_ns }
    }

    /// Counts what is due by now. True: it was something.
    fn expire(&self, elapsed_ns: i64) -> bool {
        let due_ns = self.due_ns.load(Ordering::Acquire);
        if due_ns > elapsed_ns || due_ns == NEVER {
            return false;
        }
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        let (times, next_ns) = match interval_ns {
            0 => (1, NEVER),
            _ => {
                let times = (elapsed_ns - due_ns) / interval_ns + 1;
                (times, due_ns.saturating_add(times.saturating_mul(interval_ns)))
            }
        };
        // Of several threads that look, one counts.
        if self.due_ns.compare_exchange(due_ns, next_ns, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        self.expired.fetch_add(times as u64, Ordering::AcqRel);
        arm_really(self.fd.load(Ordering::Relaxed) - 1, Setting { left_ns: 1, interval_ns: 0 });
        true
    }
}

fn arm_really(fd: c_int, setting: Setting) {
    let raw = setting.write();
    // SAFETY: the structure is valid; an error means that the program has closed the descriptor behind our back.
    unsafe { libc::timerfd_settime(fd, 0, &raw, core::ptr::null_mut()) };
}

/// What is armed now, of a timer that counts virtual time.
pub fn look(fd: c_int) -> Option<Setting> {
    let (generation, elapsed_ns) = now()?;
    let timer = find(fd).filter(|timer| timer.is_of(generation))?;
    timer.expire(elapsed_ns);
    Some(timer.setting(elapsed_ns))
}

/// Arms or disarms a timer on virtual time. The caller has disarmed it in the kernel. False: it is not known.
pub fn arm(fd: c_int, setting: Setting) -> bool {
    let (Some(timer), Some((generation, elapsed_ns))) = (find(fd), now()) else { return false };
    let due_ns = if setting.left_ns == 0 { NEVER } else { elapsed_ns.saturating_add(setting.left_ns) };
    let is_earliest = due_ns < earliest(generation);
    timer.due_ns.store(NEVER, Ordering::Release);
    timer.generation.store(generation, Ordering::Relaxed);
    timer.interval_ns.store(setting.interval_ns, Ordering::Relaxed);
    timer.expired.store(0, Ordering::Relaxed);
    timer.due_ns.store(due_ns, Ordering::Release);
    if is_earliest {
        // Who waits for descriptors already does not know of this moment.
        parking::nudge();
    }
    true
}

fn earliest(generation: u64) -> i64 {
    let timers = TIMERS.iter().filter(|timer| timer.is_of(generation));
    timers.map(|timer| timer.due_ns.load(Ordering::Acquire)).min().unwrap_or(NEVER)
}

/// Makes those expire that are due.
#[inline]
pub fn expire_due() {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some((generation, elapsed_ns)) = now() else { return };
    for timer in TIMERS.iter().filter(|timer| timer.is_of(generation)) {
        timer.expire(elapsed_ns);
    }
}

/// How long a wait for descriptors may last before a timer is due, where that is sooner than the wait's own limit.
#[inline]
pub fn sooner_than(left_ns: Option<i64>) -> Option<i64> {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let (generation, elapsed_ns) = now()?;
    let due_ns = earliest(generation);
    let timer_ns = due_ns.saturating_sub(elapsed_ns).max(0);
    (due_ns != NEVER && left_ns.is_none_or(|left_ns| timer_ns < left_ns)).then_some(timer_ns)
}

/// How often a timer has expired since it was asked; for a read of it.
pub fn take_expired(fd: c_int) -> u64 {
    let (Some(timer), Some((generation, elapsed_ns))) = (find(fd), now()) else { return 0 };
    if !timer.is_of(generation) {
        return 0;
    }
    timer.expire(elapsed_ns);
    timer.expired.swap(0, Ordering::AcqRel)
}

/// Whether it counts virtual time: nothing is armed in the kernel, so a read of it would wait for ever.
pub fn is_virtual(fd: c_int) -> bool {
    let Some((generation, _)) = now() else { return false };
    find(fd).is_some_and(|timer| timer.is_of(generation))
}

/// The sandbox of the moment is about to be left: what is armed goes on in real time.
pub fn release() {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some((generation, elapsed_ns)) = now() else { return };
    for timer in TIMERS.iter().filter(|timer| timer.is_of(generation)) {
        let setting = timer.setting(elapsed_ns);
        timer.due_ns.store(NEVER, Ordering::Release);
        timer.generation.store(0, Ordering::Relaxed);
        if setting.left_ns != 0 {
            arm_really(timer.fd.load(Ordering::Relaxed) - 1, setting);
        }
    }
}
