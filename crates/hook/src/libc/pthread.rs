//! `<pthread.h>`: starting threads, and timed waits.

use crate::guard::Call;
use crate::table::hooks;
use crate::{condition, threads, wait};
use core::ffi::{c_int, c_void};
use hermetic_engine::Thread;
use libc::{clockid_t, pthread_attr_t, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

hooks! {
    pthread_create(
        id: *mut pthread_t, attributes: *const pthread_attr_t, start: Option<Start>, argument: *mut c_void
    ) -> c_int;
    #[Interpreter = pthread_cond_timedwait_of_interpreter] pthread_cond_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, deadline: *const timespec
    ) -> c_int;
    pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, id: clockid_t, deadline: *const timespec
    ) -> c_int;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int;
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, id: clockid_t, deadline: *const timespec) -> c_int;
}

/// What a new thread of the sandbox is started with. It travels in memory of its own, which the new thread frees.
struct Beginning {
    record: *mut Thread,
    start: Start,
    argument: *mut c_void,
}

pub unsafe extern "C" fn pthread_create(
    id: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Option<Start>,
    argument: *mut c_void,
) -> c_int {
    let Some((record, function)) = start.and_then(|function| Some((prepare_child()?, function))) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_create(id, attributes, start, argument) };
    };
    // Starting a thread allocates its stack; this is not a place that malloc calls.
    let beginning = Box::into_raw(Box::new(Beginning { record, start: function, argument }));
    // SAFETY: the program's arguments, with our beginning in front of its own.
    let error = unsafe { real::pthread_create(id, attributes, Some(begin), beginning.cast()) };
    if error != 0 {
        // SAFETY: the thread was not started, so the beginning is still ours.
        drop(unsafe { Box::from_raw(beginning) });
        threads::release(record);
    }
    error
}

fn prepare_child() -> Option<*mut Thread> {
    let mut call = Call::enter()?;
    let record = threads::reserve()?;
    let (sandbox, thread) = call.parts();
    // SAFETY: nobody else knows the record yet (H8).
    sandbox.spawn(thread, unsafe { &mut *record });
    Some(record)
}

unsafe extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` above, for this thread alone.
    let Beginning { record, start, argument } = *unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    threads::begin(record);
    // SAFETY: what the program wanted to run. Nothing with a destructor is alive here: the thread may be cancelled (H6).
    unsafe { start(argument) }
}

pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's condition, which is initialised.
    let id = unsafe { condition::clock(condition) };
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_cond_timedwait(condition, mutex, deadline) };
    };
    let real = span.deadline(id);
    // SAFETY: the program's arguments and our deadline.
    let error = unsafe { real::pthread_cond_timedwait(condition, mutex, &real) };
    note(error, span)
}

/// The interpreter hands its lock from thread to thread with this wait: it is no wait of the program, and moves no clock.
pub unsafe extern "C" fn pthread_cond_timedwait_of_interpreter(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the interpreter's condition, which is initialised.
    let id = unsafe { condition::clock(condition) };
    // SAFETY: the interpreter's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the interpreter's.
        return unsafe { real::pthread_cond_timedwait(condition, mutex, deadline) };
    };
    let real = span.deadline(id);
    // SAFETY: the interpreter's arguments and our deadline.
    unsafe { real::pthread_cond_timedwait(condition, mutex, &real) }
}

pub unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_cond_clockwait(condition, mutex, id, deadline) };
    };
    let real = span.deadline(id);
    // SAFETY: the program's arguments and our deadline.
    let error = unsafe { real::pthread_cond_clockwait(condition, mutex, id, &real) };
    note(error, span)
}

pub unsafe extern "C" fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(libc::CLOCK_REALTIME, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_mutex_timedlock(mutex, deadline) };
    };
    let real = span.deadline(libc::CLOCK_REALTIME);
    // SAFETY: the program's mutex and our deadline.
    let error = unsafe { real::pthread_mutex_timedlock(mutex, &real) };
    note(error, span)
}

pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_mutex_clocklock(mutex, id, deadline) };
    };
    let real = span.deadline(id);
    // SAFETY: the program's mutex and our deadline.
    let error = unsafe { real::pthread_mutex_clocklock(mutex, id, &real) };
    note(error, span)
}

fn note(error: c_int, span: wait::Span) -> c_int {
    if error == libc::ETIMEDOUT {
        span.timed_out();
    }
    error
}
