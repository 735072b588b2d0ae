//! `<semaphore.h>`: timed waits.

use crate::table::hooks;
use crate::wait;
use core::ffi::c_int;
use libc::{clockid_t, sem_t, timespec};

hooks! {
    sem_timedwait(semaphore: *mut sem_t, deadline: *const timespec) -> c_int;
    sem_clockwait(semaphore: *mut sem_t, id: clockid_t, deadline: *const timespec) -> c_int;
}

pub unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(libc::CLOCK_REALTIME, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::sem_timedwait(semaphore, deadline) };
    };
    let real = span.deadline(libc::CLOCK_REALTIME);
    // SAFETY: the program's semaphore and our deadline.
    let result = unsafe { real::sem_timedwait(semaphore, &real) };
    note(result, span);
    result
}

pub unsafe extern "C" fn sem_clockwait(semaphore: *mut sem_t, id: clockid_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::sem_clockwait(semaphore, id, deadline) };
    };
    let real = span.deadline(id);
    // SAFETY: the program's semaphore and our deadline.
    let result = unsafe { real::sem_clockwait(semaphore, id, &real) };
    note(result, span);
    result
}

fn note(result: c_int, span: wait::Span) {
    if result != 0 && hermetic_sys::clock::errno() == libc::ETIMEDOUT {
        span.timed_out();
        hermetic_sys::clock::set_errno(libc::ETIMEDOUT);
    }
}
