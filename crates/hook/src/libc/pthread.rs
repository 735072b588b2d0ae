//! `<pthread.h>`: starting and joining threads, conditions, locks with a limit.

use crate::guard::Call;
use crate::host::Registered;
use crate::parking::{self, Waited};
use crate::table::hooks;
use crate::{condition, host_lock, threads, wait};
use core::ffi::{c_int, c_void};
use hermetic_engine::Thread;
use hermetic_journal::WaitKind;
use libc::{clockid_t, pthread_attr_t, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

hooks! {
    #[Interpreter = pthread_create_of_interpreter] pthread_create(
        id: *mut pthread_t, attributes: *const pthread_attr_t, start: Option<Start>, argument: *mut c_void
    ) -> c_int;
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, deadline: *const timespec) -> c_int;
    pthread_clockjoin_np(
        thread: pthread_t, result: *mut *mut c_void, id: clockid_t, deadline: *const timespec
    ) -> c_int;
    #[Interpreter = pthread_cond_wait_of_interpreter] pthread_cond_wait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t
    ) -> c_int;
    #[Interpreter = pthread_cond_timedwait_of_interpreter] pthread_cond_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, deadline: *const timespec
    ) -> c_int;
    pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, id: clockid_t, deadline: *const timespec
    ) -> c_int;
    #[Interpreter = pthread_cond_signal_of_interpreter] pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int;
    pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int;
    #[Interpreter = pthread_mutex_lock_of_interpreter] pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int;
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, id: clockid_t, deadline: *const timespec) -> c_int;
    #[Interpreter = pthread_mutex_unlock_of_interpreter] pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
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
    // SAFETY: the arguments are the program's.
    unsafe { create(id, attributes, start, argument, false) }
}

/// A thread that the interpreter starts runs interpreted code: it waits for its turn.
pub unsafe extern "C" fn pthread_create_of_interpreter(
    id: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Option<Start>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe { create(id, attributes, start, argument, true) }
}

/// # Safety
/// As for `pthread_create`.
unsafe fn create(
    id: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Option<Start>,
    argument: *mut c_void,
    is_host: bool,
) -> c_int {
    let Some((record, function)) = start.and_then(|function| Some((prepare_child(is_host)?, function))) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::pthread_create(id, attributes, start, argument) };
    };
    // Starting a thread allocates its stack; this is not a place that malloc calls.
    let beginning = Box::into_raw(Box::new(Beginning { record, start: function, argument }));
    // SAFETY: the record is ours until the thread runs.
    let (seat, identity) = unsafe { &*record }.place();
    // SAFETY: the program's arguments, with our beginning in front of its own.
    let error = unsafe { real::pthread_create(id, attributes, Some(begin), beginning.cast()) };
    if error != 0 {
        // SAFETY: the thread was not started, so the beginning is still ours.
        drop(unsafe { Box::from_raw(beginning) });
        // SAFETY: as above, and so is its record.
        parking::forget_thread(unsafe { &mut *record });
        threads::release(record);
    } else {
        // SAFETY: libc has filled it.
        parking::name_thread(seat, identity, unsafe { id.read() });
    }
    error
}

fn prepare_child(is_host: bool) -> Option<*mut Thread> {
    let mut call = Call::enter()?;
    let record = threads::reserve()?;
    let (sandbox, thread) = call.parts();
    // SAFETY: nobody else knows the record yet (H8).
    let child = unsafe { &mut *record };
    sandbox.spawn(thread, child, &Registered);
    if !parking::expect_thread(child, is_host, sandbox.is_guest(thread)) {
        sandbox.report_parting(thread, &Registered, None, None);
    }
    Some(record)
}

unsafe extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: made by `create` above, for this thread alone.
    let Beginning { record, start, argument } = *unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    threads::begin(record);
    // SAFETY: this thread's own record (H8).
    parking::begin_thread(unsafe { &mut *record });
    // SAFETY: what the program wanted to run. Nothing with a destructor is alive here: the thread may be cancelled (H6).
    unsafe { start(argument) }
}

pub unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    // A thread keeps its place until its last destructor has run; what is left then is short.
    while parking::is_seated(thread) {
        let channel = parking::join_channel(thread) as usize;
        match parking::park(WaitKind::Join, channel, None, || !parking::is_seated(thread)) {
            Some(Waited::Signalled | Waited::Moved { .. } | Waited::Interrupted) => {}
            _ => break,
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { join_ending(thread, result) }
}

pub unsafe extern "C" fn pthread_timedjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_timedjoin_np(thread, result, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { join_until(thread, result, libc::CLOCK_REALTIME, deadline, real) }
}

pub unsafe extern "C" fn pthread_clockjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_clockjoin_np(thread, result, id, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { join_until(thread, result, id, deadline, real) }
}

/// # Safety
/// The program's promises to `pthread_clockjoin_np`.
unsafe fn join_until(
    thread: pthread_t,
    result: *mut *mut c_void,
    id: clockid_t,
    deadline: *const timespec,
    real: impl FnOnce(*const timespec) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else { return real(deadline) };
    let mut left_ns = Some(span.ns);
    while parking::is_seated(thread) {
        let begin = wait::elapsed();
        let channel = parking::join_channel(thread) as usize;
        match parking::park(WaitKind::Join, channel, left_ns, || !parking::is_seated(thread)) {
            None => return note(real(&span.shortened(left_ns).deadline(id)), span),
            Some(Waited::TimedOut) => return libc::ETIMEDOUT,
            Some(Waited::Deadlock) => break,
            Some(Waited::Moved { left_ns: left }) => left_ns = left,
            Some(_) => left_ns = wait::left(left_ns, begin),
        }
    }
    if threads::is_ending(thread) {
        // SAFETY: the caller's promise.
        return unsafe { join_ending(thread, result) };
    }
    note(real(&span.shortened(left_ns).deadline(id)), span)
}

/// Joins a thread that is past its last destructor. The kernel takes moments to end it (on a busy machine many), in which the
/// joining thread must not look asleep: nobody in the table would know what it waits for. So it looks again and again.
///
/// # Safety
/// As for `pthread_join`.
unsafe fn join_ending(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    if Call::enter().is_some() {
        let tries_max = if threads::is_ending(thread) { TRIES_MAX } else { YIELDS_MAX };
        for tries in 0..tries_max {
            // SAFETY: the caller's promise.
            let error = unsafe { pthread_tryjoin_np(thread, result) };
            if error != libc::EBUSY {
                threads::forget_ending(thread);
                return error;
            }
            pause(tries);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real::pthread_join(thread, result) }
}

/// Looks without sleep, before a thread of which nothing is known is joined really.
const YIELDS_MAX: u32 = 10_000;
/// Looks at a thread that is known to end: some seconds.
const TRIES_MAX: u32 = YIELDS_MAX + 100_000;
const PAUSE: timespec = timespec { tv_sec: 0, tv_nsec: 50_000 };

fn pause(tries: u32) {
    if tries < YIELDS_MAX {
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    } else {
        // SAFETY: a valid span, and nobody asks what is left of it.
        unsafe { libc::nanosleep(&PAUSE, core::ptr::null_mut()) };
    }
}

extern "C" {
    fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int;
}

/// Waits for a condition in the table. Err: the wait, or this much of it, must be made really.
///
/// # Safety
/// The program's promises to `pthread_cond_wait`.
unsafe fn park(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    ns: Option<i64>,
) -> Result<c_int, Option<i64>> {
    let waited = parking::park(WaitKind::Condition, condition as usize, ns, || {
        // SAFETY: the program holds the mutex, as the wait demands.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        false
    });
    let Some(waited) = waited else { return Err(ns) };
    // Whatever ended the wait, other than its time, is told as a wake-up: conditions may end early, and the program looks at
    // its reason again. SAFETY: the program's mutex, which was given up above.
    unsafe { pthread_mutex_lock(mutex) };
    Ok(if waited == Waited::TimedOut { libc::ETIMEDOUT } else { 0 })
}

pub unsafe extern "C" fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the arguments are the program's.
    match unsafe { park(condition, mutex, None) } {
        Ok(result) => result,
        // SAFETY: the arguments are the program's.
        Err(_) => unsafe { real::pthread_cond_wait(condition, mutex) },
    }
}

/// Part of handing the interpreter's lock over: the thread keeps its turn.
pub unsafe extern "C" fn pthread_cond_wait_of_interpreter(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: the arguments are the interpreter's.
    unsafe { real::pthread_cond_wait(condition, mutex) }
}

/// # Safety
/// The program's promises to `pthread_cond_timedwait`.
unsafe fn timed(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    id: clockid_t,
    deadline: *const timespec,
    real: impl FnOnce(*const timespec) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else { return real(deadline) };
    // SAFETY: the caller's promise.
    match unsafe { park(condition, mutex, Some(span.ns)) } {
        Ok(result) => result,
        Err(left) => note(real(&span.shortened(left).deadline(id)), span),
    }
}

pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's condition, which is initialised.
    let id = unsafe { condition::clock(condition) };
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_cond_timedwait(condition, mutex, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { timed(condition, mutex, id, deadline, real) }
}

/// The interpreter hands its lock from thread to thread with this wait: it is no wait of the program, and moves no clock.
/// A thread of the sandbox that finds the lock taken by another one parks until it is its turn; the wait does not expire.
pub unsafe extern "C" fn pthread_cond_timedwait_of_interpreter(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    host_lock::note(condition, mutex);
    // SAFETY: the interpreter's condition, which is initialised.
    let id = unsafe { condition::clock(condition) };
    // SAFETY: the interpreter's promise to libc.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else {
        // SAFETY: the arguments are the interpreter's.
        return unsafe { real::pthread_cond_timedwait(condition, mutex, deadline) };
    };
    let park = parking::await_host_lock(condition as usize, || {
        // SAFETY: the interpreter holds the mutex, as the wait demands.
        unsafe { libc::pthread_mutex_unlock(mutex) };
    });
    if park {
        // SAFETY: given up above; the interpreter holds it for moments only.
        unsafe { libc::pthread_mutex_lock(mutex) };
        return 0;
    }
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
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_cond_clockwait(condition, mutex, id, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { timed(condition, mutex, id, deadline, real) }
}

pub unsafe extern "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the argument is the program's. Threads that wait really and parked ones may both wake: waits may end early.
    let result = unsafe { real::pthread_cond_signal(condition) };
    parking::signal(condition as usize, 1);
    result
}

pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the argument is the program's.
    let result = unsafe { real::pthread_cond_broadcast(condition) };
    parking::signal(condition as usize, usize::MAX);
    result
}

pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program's mutex.
    let attempt = || unsafe { libc::pthread_mutex_trylock(mutex) } == 0;
    // SAFETY: the argument is the program's; libc also names what is wrong with it.
    parking::in_kernel(WaitKind::Lock, || attempt().then_some(0), || unsafe { real::pthread_mutex_lock(mutex) })
}

/// The interpreter holds its own mutexes for moments only: no reason to give the turn away.
pub unsafe extern "C" fn pthread_mutex_lock_of_interpreter(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the argument is the interpreter's.
    let error = unsafe { real::pthread_mutex_lock(mutex) };
    host_lock::note_locked();
    error
}

pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the argument is the program's.
    let error = unsafe { real::pthread_mutex_unlock(mutex) };
    if error == 0 {
        parking::signal(mutex as usize, 1);
    }
    error
}

/// See `pthread_mutex_lock_of_interpreter`. The unlock that ends giving the interpreter's lock away is where another thread
/// may take its turn.
pub unsafe extern "C" fn pthread_mutex_unlock_of_interpreter(mutex: *mut pthread_mutex_t) -> c_int {
    host_lock::note_unlocking(mutex);
    // SAFETY: the argument is the interpreter's.
    let error = unsafe { real::pthread_mutex_unlock(mutex) };
    if host_lock::is_given_away(mutex) {
        parking::offer_turn();
    }
    error
}

/// The interpreter signals its lock's condition when it gives the lock away, while it holds the mutex: it is marked, and the
/// turn is offered when the mutex is free again.
pub unsafe extern "C" fn pthread_cond_signal_of_interpreter(condition: *mut pthread_cond_t) -> c_int {
    host_lock::note_signalled(condition);
    // SAFETY: the argument is the interpreter's.
    unsafe { pthread_cond_signal(condition) }
}

/// Takes a lock that `attempt` tries, or gives up at a deadline; `real` waits really. Whoever gives the lock back rings the
/// channel.
///
/// # Safety
/// A non-null `deadline` points to a timespec.
pub unsafe fn lock_until(
    channel: usize,
    id: clockid_t,
    deadline: *const timespec,
    mut attempt: impl FnMut() -> c_int,
    real: impl FnOnce(*const timespec) -> c_int,
) -> c_int {
    let error = attempt();
    if error != libc::EBUSY {
        return error;
    }
    // SAFETY: the caller's promise.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else { return real(deadline) };
    let mut left_ns = Some(span.ns);
    loop {
        let begin = wait::elapsed();
        let mut error = libc::EBUSY;
        let waited = parking::park(WaitKind::Lock, channel, left_ns, || {
            error = attempt();
            error != libc::EBUSY
        });
        match waited {
            _ if error != libc::EBUSY => return error,
            None => return note(real(&span.shortened(left_ns).deadline(id)), span),
            Some(Waited::TimedOut) => {
                let error = attempt();
                return if error == libc::EBUSY { libc::ETIMEDOUT } else { error };
            }
            Some(Waited::Moved { left_ns: left }) => left_ns = left,
            Some(_) => left_ns = wait::left(left_ns, begin),
        }
    }
}

pub unsafe extern "C" fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_mutex_timedlock(mutex, deadline) };
    // SAFETY: the program's mutex.
    let attempt = || unsafe { libc::pthread_mutex_trylock(mutex) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(mutex as usize, libc::CLOCK_REALTIME, deadline, attempt, real) }
}

pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_mutex_clocklock(mutex, id, deadline) };
    // SAFETY: the program's mutex.
    let attempt = || unsafe { libc::pthread_mutex_trylock(mutex) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(mutex as usize, id, deadline, attempt, real) }
}

fn note(error: c_int, span: wait::Span) -> c_int {
    if error == libc::ETIMEDOUT {
        span.timed_out();
    }
    error
}
