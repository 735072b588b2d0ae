//! `<poll.h>`: waiting for descriptors.

use crate::table::hooks;
use crate::wait;
use core::ffi::{c_int, c_ulong};
use hermetic_model::clock;
use libc::{pollfd, sigset_t, timespec};

hooks! {
    poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int;
    __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, len: usize) -> c_int;
    ppoll(fds: *mut pollfd, count: c_ulong, timeout: *const timespec, mask: *const sigset_t) -> c_int;
}

/// Makes a wait that has `timeout_ns`, if any, and notes when it times out, which `wait` tells by returning 0.
pub fn timed(timeout_ns: Option<i64>, wait: impl FnOnce() -> c_int) -> c_int {
    let span = timeout_ns.filter(|&ns| ns > 0).and_then(wait::lasting);
    let result = wait();
    if let (0, Some(span)) = (result, span) {
        span.timed_out();
    }
    result
}

/// Nanoseconds of a relative time-out; none for "without end" and for what libc will refuse.
///
/// # Safety
/// A non-null pointer points to a timespec.
pub unsafe fn span_of(timeout: *const timespec) -> Option<i64> {
    // SAFETY: the caller's promise.
    let timeout = unsafe { timeout.as_ref() }?;
    clock::span_from_timespec(timeout.tv_sec, timeout.tv_nsec)
}

pub unsafe extern "C" fn poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    timed(clock::from_poll_timeout(timeout), || unsafe { real::poll(fds, count, timeout) })
}

pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, len: usize) -> c_int {
    // SAFETY: the arguments are the program's.
    timed(clock::from_poll_timeout(timeout), || unsafe { real::__poll_chk(fds, count, timeout, len) })
}

pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: c_ulong,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let span = unsafe { span_of(timeout) };
    // SAFETY: the arguments are the program's.
    timed(span, || unsafe { real::ppoll(fds, count, timeout, mask) })
}
