//! `<mqueue.h>`: message queues. On Linux a queue is a descriptor, which can be waited for like any other.

use super::poll::{wait_until, Limit};
use crate::glance::Only;
use crate::table::hooks;
use crate::wait;
use core::ffi::{c_char, c_int, c_uint};
use hermetic_sys::clock::{errno, set_errno};
use libc::{mqd_t, pollfd, size_t, ssize_t, timespec};

hooks! {
    mq_send(queue: mqd_t, message: *const c_char, len: size_t, priority: c_uint) -> c_int;
    mq_timedsend(
        queue: mqd_t, message: *const c_char, len: size_t, priority: c_uint, deadline: *const timespec
    ) -> c_int;
    mq_receive(queue: mqd_t, message: *mut c_char, len: size_t, priority: *mut c_uint) -> ssize_t;
    mq_timedreceive(
        queue: mqd_t, message: *mut c_char, len: size_t, priority: *mut c_uint, deadline: *const timespec
    ) -> ssize_t;
}

/// A deadline that has passed: the kernel answers at once.
const PAST: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// Runs a call that waits until a deadline on the wall clock. `call` makes it with the deadline that it is given.
///
/// # Safety
/// A non-null `deadline` points to a timespec.
unsafe fn until(
    queue: mqd_t,
    events: i16,
    deadline: *const timespec,
    mut call: impl FnMut(*const timespec) -> ssize_t,
) -> ssize_t {
    let limit = match deadline.is_null() {
        true => Some(Limit::Never),
        // SAFETY: the caller's promise.
        false => unsafe { wait::until(libc::CLOCK_REALTIME, deadline) }.map(|span| Limit::Nanoseconds(span.ns)),
    };
    let Some(limit) = limit.filter(|_| crate::guard::active().is_some()) else { return call(deadline) };
    let mut result = -1;
    let mut look = |_: Only| {
        result = call(&PAST);
        c_int::from(result >= 0 || errno() != libc::ETIMEDOUT)
    };
    if look(None) != 0 {
        return result;
    }
    let mut really = None;
    let waited = wait_until(
        limit,
        core::ptr::null(),
        look,
        |fds| {
            fds.push(pollfd { fd: queue, events, revents: 0 });
        },
        |limit| {
            really = Some(limit);
            1
        },
    );
    match (really, waited) {
        (Some(limit), _) => {
            let span = limit.as_ns().and_then(wait::lasting);
            let deadline = span.map(|span| span.deadline(libc::CLOCK_REALTIME));
            call(deadline.as_ref().map_or(core::ptr::null(), core::ptr::from_ref))
        }
        (None, 0) => {
            set_errno(libc::ETIMEDOUT);
            -1
        }
        // Interrupted: `wait_until` has said so.
        (None, ..0) => -1,
        (None, _) => result,
    }
}

pub unsafe extern "C" fn mq_send(queue: mqd_t, message: *const c_char, len: size_t, priority: c_uint) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe { mq_timedsend(queue, message, len, priority, core::ptr::null()) }
}

pub unsafe extern "C" fn mq_timedsend(
    queue: mqd_t,
    message: *const c_char,
    len: size_t,
    priority: c_uint,
    deadline: *const timespec,
) -> c_int {
    let call = |deadline: *const timespec| {
        // SAFETY: the program's arguments, or a deadline of ours.
        unsafe { real::mq_timedsend(queue, message, len, priority, deadline) as ssize_t }
    };
    // SAFETY: the program's promise to libc.
    unsafe { until(queue, libc::POLLOUT, deadline, call) as c_int }
}

pub unsafe extern "C" fn mq_receive(queue: mqd_t, message: *mut c_char, len: size_t, priority: *mut c_uint) -> ssize_t {
    // SAFETY: the arguments are the program's.
    unsafe { mq_timedreceive(queue, message, len, priority, core::ptr::null()) }
}

pub unsafe extern "C" fn mq_timedreceive(
    queue: mqd_t,
    message: *mut c_char,
    len: size_t,
    priority: *mut c_uint,
    deadline: *const timespec,
) -> ssize_t {
    let call = |deadline: *const timespec| {
        // SAFETY: the program's arguments, or a deadline of ours.
        unsafe { real::mq_timedreceive(queue, message, len, priority, deadline) }
    };
    // SAFETY: the program's promise to libc.
    unsafe { until(queue, libc::POLLIN, deadline, call) }
}
