//! `<threads.h>`: C11's names for threads, locks and conditions.
//!
//! glibc's types are those of `<pthread.h>` under other names, so these are the hooks of `pthread.rs` with C11's result codes.
//! `thrd_sleep` is in `time.rs`.

use super::pthread;
use crate::table::hooks;
use core::ffi::{c_int, c_void};
use libc::{pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

type Start = unsafe extern "C" fn(*mut c_void) -> c_int;

hooks! {
    thrd_create(id: *mut pthread_t, start: Option<Start>, argument: *mut c_void) -> c_int;
    thrd_join(thread: pthread_t, result: *mut c_int) -> c_int;
    cnd_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    cnd_timedwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int;
    cnd_signal(condition: *mut pthread_cond_t) -> c_int;
    cnd_broadcast(condition: *mut pthread_cond_t) -> c_int;
    mtx_lock(mutex: *mut pthread_mutex_t) -> c_int;
    mtx_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int;
    mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int;
}

/// The result codes, as glibc numbers them.
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NOMEM: c_int = 3;
const TIMEDOUT: c_int = 4;

fn code(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM | libc::EAGAIN => NOMEM,
        libc::ETIMEDOUT => TIMEDOUT,
        _ => ERROR,
    }
}

/// What a new thread is started with. It travels in memory of its own, which the new thread frees.
struct Beginning {
    start: Start,
    argument: *mut c_void,
}

pub unsafe extern "C" fn thrd_create(id: *mut pthread_t, start: Option<Start>, argument: *mut c_void) -> c_int {
    let Some(start) = start.filter(|_| crate::guard::active().is_some()) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::thrd_create(id, start, argument) };
    };
    let beginning = Box::into_raw(Box::new(Beginning { start, argument }));
    // SAFETY: the program's arguments, with our beginning in front of its own.
    let error = unsafe { pthread::pthread_create(id, core::ptr::null(), Some(begin), beginning.cast()) };
    if error != 0 {
        // SAFETY: the thread was not started, so the beginning is still ours.
        drop(unsafe { Box::from_raw(beginning) });
    }
    code(error)
}

/// glibc carries the number that a C11 thread returns in the pointer that other threads return.
unsafe extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: made by `thrd_create` above, for this thread alone.
    let Beginning { start, argument } = *unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    // SAFETY: what the program wanted to run. Nothing with a destructor is alive here (H6).
    let result = unsafe { start(argument) };
    core::ptr::without_provenance_mut(result as usize)
}

pub unsafe extern "C" fn thrd_join(thread: pthread_t, result: *mut c_int) -> c_int {
    let mut returned = core::ptr::null_mut();
    // SAFETY: the program's thread.
    let error = unsafe { pthread::pthread_join(thread, &mut returned) };
    if error == 0 && !result.is_null() {
        // SAFETY: not null, and the program's promise to libc.
        unsafe { result.write(returned.addr() as c_int) };
    }
    code(error)
}

pub unsafe extern "C" fn cnd_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the arguments are the program's.
    code(unsafe { pthread::pthread_cond_wait(condition, mutex) })
}

pub unsafe extern "C" fn cnd_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the arguments are the program's.
    code(unsafe { pthread::pthread_cond_timedwait(condition, mutex, deadline) })
}

pub unsafe extern "C" fn cnd_signal(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the argument is the program's.
    code(unsafe { pthread::pthread_cond_signal(condition) })
}

pub unsafe extern "C" fn cnd_broadcast(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the argument is the program's.
    code(unsafe { pthread::pthread_cond_broadcast(condition) })
}

pub unsafe extern "C" fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the argument is the program's.
    code(unsafe { pthread::pthread_mutex_lock(mutex) })
}

pub unsafe extern "C" fn mtx_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int {
    // SAFETY: the arguments are the program's.
    code(unsafe { pthread::pthread_mutex_timedlock(mutex, deadline) })
}

pub unsafe extern "C" fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the argument is the program's.
    code(unsafe { pthread::pthread_mutex_unlock(mutex) })
}
