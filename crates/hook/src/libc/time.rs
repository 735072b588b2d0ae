//! `<time.h>` and `<sys/time.h>`: clocks and sleeping.

use crate::follower;
use crate::guard::Call;
use crate::host::Registered;
use crate::parking::{self, Waited};
use crate::table::hooks;
use crate::wait;
use core::ffi::{c_int, c_void};
use hermetic_engine::time::Wait;
use hermetic_journal::WaitKind;
use hermetic_model::clock::{self, Clock};
use hermetic_sys::clock::{self as kernel, set_errno};
use libc::{clock_t, clockid_t, itimerval, time_t, timespec, timeval};

hooks! {
    #[Interpreter = clock_gettime_of_interpreter] clock_gettime(id: clockid_t, out: *mut timespec) -> c_int;
    gettimeofday(out: *mut timeval, zone: *mut c_void) -> c_int;
    time(out: *mut time_t) -> time_t;
    clock() -> clock_t;
    timespec_get(out: *mut timespec, base: c_int) -> c_int;
    nanosleep(request: *const timespec, left: *mut timespec) -> c_int;
    clock_nanosleep(id: clockid_t, flags: c_int, request: *const timespec, left: *mut timespec) -> c_int;
    thrd_sleep(request: *const timespec, left: *mut timespec) -> c_int;
    setitimer(which: c_int, timer: *const itimerval, old: *mut itimerval) -> c_int;
}

const TIME_UTC: c_int = 1;
/// Fixed by POSIX, whatever the machine's clock can do.
const CLOCKS_PER_SEC: i64 = 1_000_000;

/// Which of our clocks a kernel clock is. Clocks of other processes and threads are not ours.
pub fn clock_of(id: clockid_t) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM | libc::CLOCK_TAI => {
            Some(Clock::Wall)
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => Some(Clock::Monotonic),
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => Some(Clock::Cpu),
        _ => None,
    }
}

/// What a kernel clock shows inside; none where the call is not part of a sandbox.
#[inline(always)]
pub fn read(id: clockid_t) -> Option<i64> {
    let Some(mut call) = Call::enter() else { return if follower::is_any() { follower::read(id) } else { None } };
    let clock = clock_of(id)?;
    let (sandbox, thread) = call.parts();
    Some(sandbox.read_clock(thread, &Registered, clock, || kernel::read(id)))
}

/// # Safety
/// `out` is valid for writing, as libc's function demands.
#[inline(always)]
unsafe fn put(out: *mut timespec, ns: i64) {
    let (tv_sec, tv_nsec) = clock::to_timespec(ns);
    // SAFETY: the caller's promise.
    unsafe { out.write(timespec { tv_sec, tv_nsec }) };
}

pub unsafe extern "C" fn clock_gettime(id: clockid_t, out: *mut timespec) -> c_int {
    if !out.is_null() {
        if let Some(ns) = read(id) {
            // SAFETY: not null, and the program's promise to libc.
            unsafe { put(out, ns) };
            return 0;
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::clock_gettime(id, out) }
}

/// The interpreter also reads the clock for itself, to hand its lock from thread to thread and whenever it takes a lock. The
/// engine tells those readings from the program's (see `tentative` there): they neither tick nor go into a journal.
pub unsafe extern "C" fn clock_gettime_of_interpreter(id: clockid_t, out: *mut timespec) -> c_int {
    if clock_of(id) == Some(Clock::Monotonic) && !out.is_null() {
        if let Some(mut call) = Call::enter() {
            let (sandbox, thread) = call.parts();
            let ns = sandbox.read_tentatively(thread, &Registered, || kernel::read(id));
            // SAFETY: not null, and the program's promise to libc.
            unsafe { put(out, ns) };
            return 0;
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { clock_gettime(id, out) }
}

pub unsafe extern "C" fn gettimeofday(out: *mut timeval, zone: *mut c_void) -> c_int {
    if !out.is_null() {
        if let Some(ns) = read(libc::CLOCK_REALTIME) {
            let (tv_sec, tv_usec) = clock::to_timeval(ns);
            // SAFETY: not null, and the program's promise to libc.
            unsafe { out.write(timeval { tv_sec, tv_usec }) };
            return 0;
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::gettimeofday(out, zone) }
}

pub unsafe extern "C" fn time(out: *mut time_t) -> time_t {
    let Some(ns) = read(libc::CLOCK_REALTIME) else {
        // SAFETY: the argument is the program's.
        return unsafe { real::time(out) };
    };
    let (seconds, _) = clock::to_timespec(ns);
    if !out.is_null() {
        // SAFETY: not null, and the program's promise to libc.
        unsafe { out.write(seconds) };
    }
    seconds
}

pub unsafe extern "C" fn clock() -> clock_t {
    match read(libc::CLOCK_PROCESS_CPUTIME_ID) {
        Some(ns) => ns / (clock::NS_PER_SEC / CLOCKS_PER_SEC),
        // SAFETY: no arguments.
        None => unsafe { real::clock() },
    }
}

pub unsafe extern "C" fn timespec_get(out: *mut timespec, base: c_int) -> c_int {
    if base == TIME_UTC && !out.is_null() {
        if let Some(ns) = read(libc::CLOCK_REALTIME) {
            // SAFETY: not null, and the program's promise to libc.
            unsafe { put(out, ns) };
            return base;
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::timespec_get(out, base) }
}

/// How a sleep went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    Over,
    /// A signal handler ran; this much is left.
    Interrupted {
        left_ns: i64,
    },
    /// This much must be slept really.
    Really {
        left_ns: i64,
    },
}

/// A sleep of `ns`.
pub fn sleep(ns: i64) -> Slept {
    let mut left_ns = ns;
    loop {
        let begin = wait::elapsed();
        match parking::park(WaitKind::Sleep, 0, Some(left_ns), || false) {
            None => return sleep_alone(left_ns),
            Some(Waited::TimedOut | Waited::Deadlock) => return Slept::Over,
            Some(Waited::Moved { left_ns: left }) => left_ns = left.unwrap_or(0),
            Some(Waited::Signalled) => left_ns = wait::left(Some(left_ns), begin).unwrap_or(0),
            Some(Waited::Interrupted) => {
                return Slept::Interrupted { left_ns: wait::left(Some(left_ns), begin).unwrap_or(0) }
            }
        }
    }
}

/// Where there is no table of waits to sleep in: there are too many threads.
fn sleep_alone(ns: i64) -> Slept {
    let Some(mut call) = Call::enter() else { return Slept::Really { left_ns: ns } };
    let (sandbox, thread) = call.parts();
    if sandbox.sleep(thread, &Registered, ns) == Wait::Real {
        return Slept::Really { left_ns: ns };
    }
    sandbox.note_move(kernel::read(libc::CLOCK_REALTIME_COARSE));
    Slept::Over
}

/// A relative sleep in the manner of `nanosleep`; `real` sleeps really.
///
/// # Safety
/// The program's promises to `nanosleep`.
unsafe fn sleep_relative(
    request: *const timespec,
    left: *mut timespec,
    real: impl FnOnce(*const timespec, *mut timespec) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(ns) = (unsafe { span(request) }) else { return real(request, left) };
    match sleep(ns) {
        Slept::Over => 0,
        Slept::Really { left_ns } if left_ns == ns => real(request, left),
        Slept::Really { left_ns } => {
            let (tv_sec, tv_nsec) = clock::to_timespec(left_ns);
            real(&timespec { tv_sec, tv_nsec }, left)
        }
        Slept::Interrupted { left_ns } => {
            if !left.is_null() {
                // SAFETY: not null, and the program's promise to libc.
                unsafe { put(left, left_ns) };
            }
            set_errno(libc::EINTR);
            -1
        }
    }
}

/// # Safety
/// A non-null `request` points to a timespec.
unsafe fn span(request: *const timespec) -> Option<i64> {
    // SAFETY: the caller's promise.
    let request = unsafe { request.as_ref() }?;
    clock::span_from_timespec(request.tv_sec, request.tv_nsec)
}

pub unsafe extern "C" fn nanosleep(request: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the arguments are the program's.
    let real = |request: *const timespec, left: *mut timespec| unsafe { real::nanosleep(request, left) };
    // SAFETY: the arguments are the program's.
    unsafe { sleep_relative(request, left, real) }
}

pub unsafe extern "C" fn thrd_sleep(request: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the arguments are the program's.
    let real = |request: *const timespec, left: *mut timespec| unsafe { real::thrd_sleep(request, left) };
    // SAFETY: the arguments are the program's.
    unsafe { sleep_relative(request, left, real) }
}

pub unsafe extern "C" fn clock_nanosleep(
    id: clockid_t,
    flags: c_int,
    request: *const timespec,
    left: *mut timespec,
) -> c_int {
    if flags & libc::TIMER_ABSTIME == 0 {
        // SAFETY: the arguments are the program's.
        let real =
            |request: *const timespec, left: *mut timespec| unsafe { real::clock_nanosleep(id, flags, request, left) };
        // SAFETY: the arguments are the program's.
        let result = unsafe { sleep_relative(request, left, real) };
        // This function returns its error.
        return if result < 0 { libc::EINTR } else { result };
    }
    // SAFETY: the program's promise to libc.
    let span = unsafe { span(request) }.and_then(|deadline_ns| wait::remaining(id, deadline_ns));
    let Some(span) = span else {
        // SAFETY: the arguments are the program's; libc names the mistake.
        return unsafe { real::clock_nanosleep(id, flags, request, left) };
    };
    match sleep(span) {
        Slept::Over => 0,
        Slept::Interrupted { .. } => libc::EINTR,
        Slept::Really { left_ns } => {
            let (tv_sec, tv_nsec) = clock::to_timespec(left_ns);
            let request = timespec { tv_sec, tv_nsec };
            // SAFETY: a virtual deadline means nothing to the kernel, so it waits for the span; a deadline has no rest.
            unsafe { real::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &request, core::ptr::null_mut()) }
        }
    }
}

/// Timers of processes are real: time-outs of harnesses use them. A server that follows clocks is told when one is over.
pub unsafe extern "C" fn setitimer(which: c_int, timer: *const itimerval, old: *mut itimerval) -> c_int {
    // SAFETY: null, or the program's timer.
    if let Some(timer) = unsafe { timer.as_ref() } {
        follower::set_timer(which, timer);
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::setitimer(which, timer, old) }
}
