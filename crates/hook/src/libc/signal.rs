//! `<signal.h>` and `pause`: waiting for signals, and sending them to threads that wait.

use super::poll::{to_timespec, wait_until, Limit};
use crate::parking;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use hermetic_sys::clock::{errno, set_errno};
use hermetic_sys::task;
use libc::{pid_t, pollfd, pthread_t, siginfo_t, sigset_t, timespec};

hooks! {
    sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, timeout: *const timespec) -> c_int;
    sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int;
    sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int;
    sigsuspend(mask: *const sigset_t) -> c_int;
    pause() -> c_int;
    kill(process: pid_t, signal: c_int) -> c_int;
    pthread_kill(thread: pthread_t, signal: c_int) -> c_int;
}

const NOW: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// Takes a pending signal of the set, or says that there is none.
///
/// # Safety
/// The program's promises to `sigtimedwait`.
unsafe fn try_take(set: *const sigset_t, info: *mut siginfo_t) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let result = unsafe { real::sigtimedwait(set, info, &NOW) };
    (result >= 0 || errno() != libc::EAGAIN).then_some(result)
}

/// A signal that waits to be taken makes a descriptor ready, so a wait with a limit is a wait for that descriptor.
pub unsafe extern "C" fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, timeout: *const timespec) -> c_int {
    if timeout.is_null() {
        // SAFETY: the arguments are the program's.
        return unsafe { sigwaitinfo(set, info) };
    }
    // SAFETY: the program's promise to libc.
    let limit = unsafe { Limit::from_timespec(timeout) };
    let Some(limit) = limit.filter(|&limit| limit != Limit::Now && crate::guard::active().is_some()) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::sigtimedwait(set, info, timeout) };
    };
    // SAFETY: the arguments are the program's.
    if let Some(result) = unsafe { try_take(set, info) } {
        return result;
    }
    // SAFETY: the program's set.
    let fd = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        // SAFETY: the arguments are the program's.
        return unsafe { real::sigtimedwait(set, info, timeout) };
    }
    let mut taken = None;
    let waited = wait_until(
        limit,
        core::ptr::null(),
        |_| {
            // SAFETY: the arguments are the program's.
            taken = unsafe { try_take(set, info) };
            c_int::from(taken.is_some())
        },
        |fds| {
            fds.push(pollfd { fd, events: libc::POLLIN, revents: 0 });
        },
        |limit| {
            let left = to_timespec(limit).unwrap_or(NOW);
            // SAFETY: the program's arguments, and what is left of its time.
            let result = unsafe { real::sigtimedwait(set, info, &left) };
            // As `wait_until` wants to be told of a wait that has timed out.
            if result < 0 && errno() == libc::EAGAIN {
                0
            } else {
                result
            }
        },
    );
    let error = errno();
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    set_errno(if waited == 0 { libc::EAGAIN } else { error });
    match (taken, waited) {
        (Some(result), 1..) => result,
        (_, 0) => -1,
        (_, result) => result,
    }
}

pub unsafe extern "C" fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    // SAFETY: the arguments are the program's.
    parking::in_kernel(WaitKind::Signal, || unsafe { try_take(set, info) }, || unsafe { real::sigwaitinfo(set, info) })
}

pub unsafe extern "C" fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    let attempt = || {
        // SAFETY: the program's set; nobody wants to know more of the signal.
        let taken = unsafe { try_take(set, core::ptr::null_mut()) }.filter(|&taken| taken > 0)?;
        // SAFETY: the program's promise to libc.
        unsafe { signal.write(taken) };
        Some(0)
    };
    // SAFETY: the arguments are the program's.
    parking::in_kernel(WaitKind::Signal, attempt, || unsafe { real::sigwait(set, signal) })
}

pub unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    let suspend = || {
        // SAFETY: the argument is the program's.
        unsafe { real::sigsuspend(mask) }
    };
    // What is pending ends the wait as soon as it begins. SAFETY: the program's promise to libc.
    let is_pending = || unsafe { mask.as_ref() }.is_some_and(task::has_pending_signal);
    parking::in_kernel(WaitKind::Signal, || is_pending().then(suspend), suspend)
}

pub unsafe extern "C" fn pause() -> c_int {
    // SAFETY: no arguments. What could end the wait is told when it begins, so there is nothing to try.
    parking::in_kernel(WaitKind::Signal, || None, || unsafe { real::pause() })
}

pub unsafe extern "C" fn kill(process: pid_t, signal: c_int) -> c_int {
    parking::expect_signal_in(process, signal);
    // SAFETY: the arguments are the program's.
    unsafe { real::kill(process, signal) }
}

pub unsafe extern "C" fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    parking::expect_signal_for(thread, signal);
    // SAFETY: the arguments are the program's.
    unsafe { real::pthread_kill(thread, signal) }
}
