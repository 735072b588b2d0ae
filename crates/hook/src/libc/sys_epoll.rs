//! `<sys/epoll.h>`: waiting for many descriptors.

use super::poll::{span_of, timed};
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_model::clock;
use libc::{epoll_event, sigset_t, timespec};

hooks! {
    epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int;
    epoll_pwait(
        epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t
    ) -> c_int;
    epoll_pwait2(
        epoll: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t
    ) -> c_int;
}

pub unsafe extern "C" fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    timed(clock::from_poll_timeout(timeout), || unsafe { real::epoll_wait(epoll, events, max, timeout) })
}

pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the program's.
    timed(clock::from_poll_timeout(timeout), || unsafe { real::epoll_pwait(epoll, events, max, timeout, mask) })
}

pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let span = unsafe { span_of(timeout) };
    // SAFETY: the arguments are the program's.
    timed(span, || unsafe { real::epoll_pwait2(epoll, events, max, timeout, mask) })
}
