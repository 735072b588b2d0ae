//! `<sys/select.h>`: waiting for sets of descriptors.

use super::poll::{to_timespec, wait_until, Limit};
use super::time::{sleep, Slept};
use crate::glance::Only;
use crate::guard;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_model::clock;
use hermetic_sys::clock::set_errno;
use hermetic_sys::map::Region;
use libc::{fd_set, pollfd, sigset_t, timespec, timeval};

hooks! {
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        timeout: *const timespec, mask: *const sigset_t
    ) -> c_int;
}

/// The three sets of a call. libc overwrites them, so each look begins with the program's own.
struct Sets {
    count: c_int,
    given: [*mut fd_set; 3],
    wanted: [fd_set; 3],
}

const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];

impl Sets {
    /// # Safety
    /// Non-null sets are the program's, and hold `count` descriptors, at most `FD_SETSIZE`.
    unsafe fn read(count: c_int, given: [*mut fd_set; 3]) -> Sets {
        // SAFETY: all-zero bytes are an empty set.
        let empty: fd_set = unsafe { core::mem::zeroed() };
        let mut sets = Sets { count, given, wanted: [empty; 3] };
        for (wanted, given) in sets.wanted.iter_mut().zip(given) {
            if !given.is_null() {
                // SAFETY: the caller's promise.
                *wanted = unsafe { *given };
            }
        }
        sets
    }

    /// Asks libc without waiting; the program's sets hold the answer if there is one.
    fn look(&self, only: Only) -> c_int {
        let wanted = only.map_or(self.wanted, |only| self.narrowed(only));
        for (wanted, given) in wanted.iter().zip(self.given) {
            if !given.is_null() {
                // SAFETY: the program's set.
                unsafe { *given = *wanted };
            }
        }
        let mut now = timeval { tv_sec: 0, tv_usec: 0 };
        let [read, write, except] = self.given;
        // SAFETY: the program's sets.
        unsafe { real::select(self.count, read, write, except, &mut now) }
    }

    /// The sets without the descriptors at other places than these of the list.
    fn narrowed(&self, only: u64) -> [fd_set; 3] {
        let mut sets = self.wanted;
        let mut list = Region::new();
        self.fill(&mut list);
        for (_, entry) in list.as_slice().iter().enumerate().filter(|(place, _)| only >> place & 1 == 0) {
            // SAFETY: the descriptor is below FD_SETSIZE.
            sets.iter_mut().for_each(|set| unsafe { libc::FD_CLR(entry.fd, set) });
        }
        sets
    }

    fn fill(&self, out: &mut Region<pollfd>) {
        for fd in 0..self.count.min(libc::FD_SETSIZE as c_int) {
            let mut events = 0;
            for (index, wanted) in self.wanted.iter().enumerate() {
                // SAFETY: the descriptor is below FD_SETSIZE.
                if !self.given[index].is_null() && unsafe { libc::FD_ISSET(fd, wanted) } {
                    events |= EVENTS[index];
                }
            }
            if events != 0 {
                out.push(pollfd { fd, events, revents: 0 });
            }
        }
    }
}

/// Programs with larger sets than libc's type manage their memory themselves; their calls stay real.
fn is_ours(count: c_int) -> bool {
    (0..=libc::FD_SETSIZE as c_int).contains(&count) && guard::active().is_some()
}

/// Without descriptors it is the oldest portable sleep, which CPython 3.10 still uses. None: it must be made really.
fn sleep_only(sets: [*mut fd_set; 3], limit: Limit) -> Option<c_int> {
    match (sets.iter().all(|set| set.is_null()), limit) {
        (true, Limit::Nanoseconds(ns)) => match sleep(ns) {
            Slept::Over => Some(0),
            Slept::Interrupted { .. } => {
                set_errno(libc::EINTR);
                Some(-1)
            }
            Slept::Really { .. } => None,
        },
        _ => None,
    }
}

pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let limit = match unsafe { timeout.as_ref() } {
        None => Some(Limit::Never),
        Some(span) if span.tv_sec < 0 => None,
        Some(span) => clock::from_timeval(span.tv_sec, span.tv_usec).map(Limit::from_ns),
    };
    let Some(limit) = limit.filter(|_| is_ours(count)) else {
        // SAFETY: the arguments are the program's; libc names the mistake.
        return unsafe { real::select(count, read, write, except, timeout) };
    };
    if let Some(result) = sleep_only([read, write, except], limit) {
        return result;
    }
    // SAFETY: the program's promise to libc.
    let sets = unsafe { Sets::read(count, [read, write, except]) };
    let result = wait_until(
        limit,
        core::ptr::null(),
        |only| sets.look(only),
        |out| sets.fill(out),
        |_| {
            // SAFETY: the arguments are the program's.
            unsafe { real::select(count, read, write, except, timeout) }
        },
    );
    // Linux leaves what is left of the time; after a virtual time-out that is nothing.
    if result == 0 && limit != Limit::Never {
        // SAFETY: not null, because there is a limit; the program's structure.
        unsafe { timeout.write(timeval { tv_sec: 0, tv_usec: 0 }) };
    }
    result
}

pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let limit = unsafe { Limit::from_timespec(timeout) };
    let Some(limit) = limit.filter(|_| is_ours(count)) else {
        // SAFETY: the arguments are the program's; libc names the mistake.
        return unsafe { real::pselect(count, read, write, except, timeout, mask) };
    };
    if let Some(result) = sleep_only([read, write, except], limit) {
        return result;
    }
    // SAFETY: the program's promise to libc.
    let sets = unsafe { Sets::read(count, [read, write, except]) };
    wait_until(
        limit,
        mask,
        |only| sets.look(only),
        |out| sets.fill(out),
        |limit| {
            let left = to_timespec(limit);
            let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the program's arguments, and what is left of its time.
            unsafe { real::pselect(count, read, write, except, left, mask) }
        },
    )
}
