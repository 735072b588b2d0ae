//! `<poll.h>`: waiting for descriptors.
//!
//! Always the real thing once, without waiting; then the wait, on the real descriptors and a bell of ours; then the real
//! thing again, which tells the program what is ready.

use crate::glance::{Glance, Only, Verdict};
use crate::parking::{self, Waited};
use crate::table::hooks;
use crate::{follower, guard, timers, wait};
use core::ffi::{c_int, c_ulong};
use hermetic_journal::WaitKind;
use hermetic_model::clock;
use hermetic_sys::clock::set_errno;
use hermetic_sys::map::Region;
use libc::{pollfd, sigset_t, timespec};

hooks! {
    poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int;
    __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, len: usize) -> c_int;
    ppoll(fds: *mut pollfd, count: c_ulong, timeout: *const timespec, mask: *const sigset_t) -> c_int;
}

/// How long a wait may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It only looks.
    Now,
    Nanoseconds(i64),
    Never,
}

impl Limit {
    pub fn from_ms(timeout: c_int) -> Limit {
        match clock::from_poll_timeout(timeout) {
            None => Limit::Never,
            Some(0) => Limit::Now,
            Some(ns) => Limit::Nanoseconds(ns),
        }
    }

    /// None for what libc will refuse.
    ///
    /// # Safety
    /// A non-null pointer points to a timespec.
    pub unsafe fn from_timespec(timeout: *const timespec) -> Option<Limit> {
        // SAFETY: the caller's promise.
        let Some(timeout) = (unsafe { timeout.as_ref() }) else { return Some(Limit::Never) };
        Some(Limit::from_ns(clock::span_from_timespec(timeout.tv_sec, timeout.tv_nsec)?))
    }

    pub fn from_ns(ns: i64) -> Limit {
        if ns == 0 {
            Limit::Now
        } else {
            Limit::Nanoseconds(ns)
        }
    }

    /// Nanoseconds; none for a wait without end.
    pub fn as_ns(self) -> Option<i64> {
        match self {
            Limit::Now => Some(0),
            Limit::Nanoseconds(ns) => Some(ns),
            Limit::Never => None,
        }
    }
}

/// Waits until `look`, which never waits itself, answers something else than 0, or the limit is reached. `fill` lists the
/// descriptors to wait for; `look` may be told to look at some of them only. `real` makes the wait really, for as long as it
/// is told.
pub fn wait_until(
    limit: Limit,
    mask: *const sigset_t,
    look: impl FnMut(Only) -> c_int,
    fill: impl FnMut(&mut Region<pollfd>),
    real: impl FnOnce(Limit) -> c_int,
) -> c_int {
    wait_until_for(WaitKind::Poll, limit, mask, look, fill, real)
}

/// The same; a journal knows the wait by its `kind`.
pub fn wait_until_for(
    kind: WaitKind,
    limit: Limit,
    mask: *const sigset_t,
    mut look: impl FnMut(Only) -> c_int,
    mut fill: impl FnMut(&mut Region<pollfd>),
    real: impl FnOnce(Limit) -> c_int,
) -> c_int {
    if guard::active().is_none() {
        return follower::waiting(limit.as_ns(), || real(limit));
    }
    timers::expire_due();
    let mut left_ns = limit.as_ns();
    let mut glance = Glance::new(kind, limit == Limit::Now);
    loop {
        // Looking may take what is there, so a call that is to look again has not looked yet.
        match glance.judge(left_ns, &mut fill) {
            Verdict::Judge => continue,
            Verdict::Wait => {}
            Verdict::Keep => return really(left_ns, real),
            Verdict::Look(None) if limit == Limit::Now => return real(limit),
            Verdict::Look(only) => {
                let answer = look(only);
                if answer != 0 || limit == Limit::Now {
                    return answer;
                }
            }
        }
        let mut fds = Region::new();
        fill(&mut fds);
        fds.push(pollfd { fd: -1, events: 0, revents: 0 });
        glance.waited();
        let begin = wait::elapsed();
        let timer_ns = timers::sooner_than(left_ns);
        match parking::poll(kind, fds.as_mut_slice(), timer_ns.or(left_ns), mask) {
            None => return really(left_ns, real),
            // Time has come to a timer, and the descriptor tells.
            Some(Waited::TimedOut) if timer_ns.is_some() => {
                timers::expire_due();
                left_ns = wait::left(left_ns, begin);
            }
            // What became ready in the same moment is not lost: the program is told.
            Some(Waited::TimedOut) => return look(glance.timed_out(&mut fill)),
            Some(Waited::Signalled) => left_ns = wait::left(left_ns, begin),
            Some(Waited::Moved { left_ns: left }) => left_ns = left_of(left_ns, timer_ns, left),
            Some(Waited::Interrupted) => {
                set_errno(libc::EINTR);
                return -1;
            }
            Some(Waited::Deadlock) => return 0,
        }
    }
}

/// What is left of a wait that moved when `moved_ns` were left of it, or of the shorter one for a timer.
fn left_of(left_ns: Option<i64>, timer_ns: Option<i64>, moved_ns: Option<i64>) -> Option<i64> {
    let Some(timer_ns) = timer_ns else { return moved_ns };
    let passed_ns = timer_ns - moved_ns.unwrap_or(timer_ns);
    left_ns.map(|left_ns| (left_ns - passed_ns).max(0))
}

/// Makes a wait really, and notes when it times out, which it tells by returning 0.
fn really(left_ns: Option<i64>, real: impl FnOnce(Limit) -> c_int) -> c_int {
    let span = left_ns.filter(|&ns| ns > 0).and_then(wait::lasting);
    let result = real(left_ns.map_or(Limit::Never, Limit::from_ns));
    if let (0, Some(span)) = (result, span) {
        span.timed_out();
    }
    result
}

/// The program's list.
///
/// # Safety
/// `fds` is valid for `count` entries.
unsafe fn list(fds: *const pollfd, count: c_ulong, out: &mut Region<pollfd>) {
    if !fds.is_null() {
        // SAFETY: the caller's promise.
        out.extend(unsafe { core::slice::from_raw_parts(fds, count as usize) });
    }
}

/// Runs a call that looks, with those entries of the program's list alone.
///
/// # Safety
/// `fds` is valid for `count` entries.
unsafe fn looking_at(only: Only, fds: *mut pollfd, count: c_ulong, look: impl FnOnce() -> c_int) -> c_int {
    let Some(only) = only.filter(|_| !fds.is_null()) else { return look() };
    let mut former = Region::new();
    // SAFETY: the caller's promise.
    if !former.extend(unsafe { core::slice::from_raw_parts(fds, count as usize) }) {
        return look();
    }
    // SAFETY: as above; no other borrow lives here.
    let given = unsafe { core::slice::from_raw_parts_mut(fds, count as usize) };
    // The kernel passes over negative numbers.
    given.iter_mut().enumerate().filter(|(place, _)| only >> place & 1 == 0).for_each(|(_, entry)| entry.fd = -1);
    let answer = look();
    // SAFETY: as above.
    let given = unsafe { core::slice::from_raw_parts_mut(fds, count as usize) };
    given.iter_mut().zip(former.as_slice()).for_each(|(entry, former)| entry.fd = former.fd);
    answer
}

pub unsafe extern "C" fn poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let look = || unsafe { real::poll(fds, count, 0) };
    wait_until(
        Limit::from_ms(timeout),
        core::ptr::null(),
        // SAFETY: the program's promise to libc.
        |only| unsafe { looking_at(only, fds, count, look) },
        // SAFETY: the program's promise to libc.
        |out| unsafe { list(fds, count, out) },
        // SAFETY: the arguments are the program's.
        |limit| unsafe { real::poll(fds, count, to_ms(limit, timeout)) },
    )
}

/// The program's own time-out where the limit is still the whole of it.
pub fn to_ms(limit: Limit, timeout: c_int) -> c_int {
    match limit {
        Limit::Now => 0,
        Limit::Never => -1,
        limit if limit == Limit::from_ms(timeout) => timeout,
        Limit::Nanoseconds(ns) => clock::to_poll_timeout(ns),
    }
}

pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, len: usize) -> c_int {
    if (count as usize).saturating_mul(size_of::<pollfd>()) > len {
        // SAFETY: the arguments are the program's; libc ends it for the overflow.
        return unsafe { real::__poll_chk(fds, count, timeout, len) };
    }
    // SAFETY: the arguments are the program's.
    unsafe { poll(fds, count, timeout) }
}

pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: c_ulong,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(limit) = (unsafe { Limit::from_timespec(timeout) }) else {
        // SAFETY: the arguments are the program's; libc names the mistake.
        return unsafe { real::ppoll(fds, count, timeout, mask) };
    };
    let now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the arguments are the program's.
    let look = || unsafe { real::ppoll(fds, count, &now, mask) };
    wait_until(
        limit,
        mask,
        // SAFETY: the program's promise to libc.
        |only| unsafe { looking_at(only, fds, count, look) },
        // SAFETY: the program's promise to libc.
        |out| unsafe { list(fds, count, out) },
        |limit| {
            let left = to_timespec(limit);
            let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the program's arguments, and what is left of its time.
            unsafe { real::ppoll(fds, count, left, mask) }
        },
    )
}

/// None for a wait without end.
pub fn to_timespec(limit: Limit) -> Option<timespec> {
    let (tv_sec, tv_nsec) = clock::to_timespec(limit.as_ns()?);
    Some(timespec { tv_sec, tv_nsec })
}
