//! `<sys/select.h>`: waiting for sets of descriptors.

use super::poll::{span_of, timed};
use super::time::sleep;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_model::clock;
use libc::{fd_set, sigset_t, timespec, timeval};

hooks! {
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        timeout: *const timespec, mask: *const sigset_t
    ) -> c_int;
}

pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let span = unsafe { timeout.as_ref() }.and_then(|span| clock::from_timeval(span.tv_sec, span.tv_usec));
    // SAFETY: the arguments are the program's.
    let wait = || unsafe { real::select(count, read, write, except, timeout) };
    waited(is_sleep(read, write, except), span, wait)
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
    let span = unsafe { span_of(timeout) };
    // SAFETY: the arguments are the program's.
    let wait = || unsafe { real::pselect(count, read, write, except, timeout, mask) };
    waited(is_sleep(read, write, except), span, wait)
}

/// Without descriptors it is the oldest portable sleep, which CPython 3.10 still uses.
fn is_sleep(read: *const fd_set, write: *const fd_set, except: *const fd_set) -> bool {
    read.is_null() && write.is_null() && except.is_null()
}

fn waited(is_sleep: bool, span: Option<i64>, wait: impl FnOnce() -> c_int) -> c_int {
    match span {
        Some(ns) if is_sleep && sleep(ns) => 0,
        Some(_) if is_sleep => wait(),
        _ => timed(span, wait),
    }
}
