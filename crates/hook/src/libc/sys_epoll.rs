//! `<sys/epoll.h>`: waiting for many descriptors. An epoll descriptor is itself ready when one of them is.

use super::poll::{to_ms, to_timespec, wait_until, Limit};
use crate::glance::{self, Only};
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_sys::map::Region;
use hermetic_sys::task::{self, EpollTarget};
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

/// Sets with more descriptors are looked at as a whole.
const TARGETS_MAX: usize = 60;

/// What a call waits for: the set, and before it the descriptors in it where it matters which of them are ready.
fn fill(epoll: c_int, out: &mut Region<pollfd>) {
    if glance::is_followed() {
        let mut targets = [EpollTarget::default(); TARGETS_MAX];
        for target in level_triggered(epoll, &mut targets) {
            out.push(pollfd { fd: target.fd, events: target.events as i16, revents: 0 });
        }
    }
    out.push(pollfd { fd: epoll, events: libc::POLLIN, revents: 0 });
}

/// The descriptors in the set. None of them where some are told once only: to look at those is to take what they tell.
fn level_triggered(epoll: c_int, targets: &mut [EpollTarget; TARGETS_MAX]) -> &[EpollTarget] {
    const ONCE: u32 = (libc::EPOLLET | libc::EPOLLONESHOT) as u32;
    match task::epoll_targets(epoll, targets) {
        Some(count) if count < TARGETS_MAX && targets[..count].iter().all(|target| target.events & ONCE == 0) => {
            // The kernel lists them by its own addresses.
            targets[..count].sort_unstable_by_key(|target| target.fd);
            &targets[..count]
        }
        _ => &[],
    }
}

/// Runs a call that looks, and keeps those events alone that are of these descriptors, in the order of the list.
///
/// # Safety
/// `events` is valid for as many entries as the call says that it wrote.
unsafe fn looking_at(only: Only, epoll: c_int, events: *mut epoll_event, look: impl FnOnce() -> c_int) -> c_int {
    let count = look();
    let (Some(only), 1..) = (only, count) else { return count };
    let mut targets = [EpollTarget::default(); TARGETS_MAX];
    let targets = level_triggered(epoll, &mut targets);
    // SAFETY: the caller's promise.
    let events = unsafe { core::slice::from_raw_parts_mut(events, count as usize) };
    let place_of = |event: &epoll_event| targets.iter().position(|target| target.data == event.u64);
    if !events.iter().all(|event| place_of(event).is_some()) {
        return count;
    }
    events.sort_unstable_by_key(place_of);
    let is_shown = |event: &epoll_event| place_of(event).is_some_and(|place| only >> place & 1 != 0);
    let mut shown = 0;
    for place in 0..events.len() {
        if is_shown(&events[place]) {
            events.swap(shown, place);
            shown += 1;
        }
    }
    shown as c_int
}

pub unsafe extern "C" fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let look = || unsafe { real::epoll_wait(epoll, events, max, 0) };
    wait_until(
        Limit::from_ms(timeout),
        core::ptr::null(),
        // SAFETY: libc has written as many events as it says.
        |only| unsafe { looking_at(only, epoll, events, look) },
        |out| fill(epoll, out),
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
    // SAFETY: the arguments are the program's.
    let look = || unsafe { real::epoll_pwait(epoll, events, max, 0, mask) };
    wait_until(
        Limit::from_ms(timeout),
        mask,
        // SAFETY: libc has written as many events as it says.
        |only| unsafe { looking_at(only, epoll, events, look) },
        |out| fill(epoll, out),
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
    // SAFETY: the arguments are the program's.
    let look = || unsafe { real::epoll_pwait2(epoll, events, max, &now, mask) };
    wait_until(
        limit,
        mask,
        // SAFETY: libc has written as many events as it says.
        |only| unsafe { looking_at(only, epoll, events, look) },
        |out| fill(epoll, out),
        |limit| {
            let left = to_timespec(limit);
            let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the program's arguments, and what is left of its time.
            unsafe { real::epoll_pwait2(epoll, events, max, left, mask) }
        },
    )
}
