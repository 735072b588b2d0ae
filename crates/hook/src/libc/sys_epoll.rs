//! `<sys/epoll.h>`: waiting for many descriptors. An epoll descriptor is itself ready when one of them is.

use super::poll::{to_ms, to_timespec, wait_until, Limit};
use crate::table::hooks;
use core::ffi::c_int;
use libc::{epoll_event, pollfd, sigset_t, timespec};

hooks! {
    epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int;
    epoll_pwait(
        epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t
    ) -> c_int;
    epoll_pwait2(
        epoll: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t
    ) -> c_int;
}

fn ready(epoll: c_int) -> pollfd {
    pollfd { fd: epoll, events: libc::POLLIN, revents: 0 }
}

pub unsafe extern "C" fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
    wait_until(
        Limit::from_ms(timeout),
        core::ptr::null(),
        // SAFETY: the arguments are the program's.
        || unsafe { real::epoll_wait(epoll, events, max, 0) },
        |out| {
            out.push(ready(epoll));
        },
        // SAFETY: the arguments are the program's.
        |limit| unsafe { real::epoll_wait(epoll, events, max, to_ms(limit, timeout)) },
    )
}

pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    wait_until(
        Limit::from_ms(timeout),
        mask,
        // SAFETY: the arguments are the program's.
        || unsafe { real::epoll_pwait(epoll, events, max, 0, mask) },
        |out| {
            out.push(ready(epoll));
        },
        // SAFETY: the arguments are the program's.
        |limit| unsafe { real::epoll_pwait(epoll, events, max, to_ms(limit, timeout), mask) },
    )
}

pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(limit) = (unsafe { Limit::from_timespec(timeout) }) else {
        // SAFETY: the arguments are the program's; libc names the mistake.
        return unsafe { real::epoll_pwait2(epoll, events, max, timeout, mask) };
    };
    let now = timespec { tv_sec: 0, tv_nsec: 0 };
    wait_until(
        limit,
        mask,
        // SAFETY: the arguments are the program's.
        || unsafe { real::epoll_pwait2(epoll, events, max, &now, mask) },
        |out| {
            out.push(ready(epoll));
        },
        |limit| {
            let left = to_timespec(limit);
            let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the program's arguments, and what is left of its time.
            unsafe { real::epoll_pwait2(epoll, events, max, left, mask) }
        },
    )
}
