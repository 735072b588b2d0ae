//! `<semaphore.h>`: waiting and posting.

use crate::guard::Call;
use crate::host::Registered;
use crate::parking::{self, Attempt, Waited};
use crate::table::hooks;
use crate::{semaphores, wait};
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use hermetic_model::clock;
use hermetic_sys::clock::{self as kernel, set_errno};
use libc::{clockid_t, sem_t, timespec};

hooks! {
    #[Interpreter = sem_trywait_of_interpreter] sem_trywait(semaphore: *mut sem_t) -> c_int;
    #[Interpreter = sem_wait_of_interpreter] sem_wait(semaphore: *mut sem_t) -> c_int;
    #[Interpreter = sem_timedwait_of_interpreter] sem_timedwait(
        semaphore: *mut sem_t, deadline: *const timespec
    ) -> c_int;
    #[Interpreter = sem_clockwait_of_interpreter] sem_clockwait(
        semaphore: *mut sem_t, id: clockid_t, deadline: *const timespec
    ) -> c_int;
    sem_post(semaphore: *mut sem_t) -> c_int;
}

/// Waits in the table. Err: the wait, or this much of it, must be made really.
///
/// # Safety
/// `semaphore` is an initialised semaphore.
unsafe fn park(semaphore: *mut sem_t, mut ns: Option<i64>) -> Result<c_int, Option<i64>> {
    // SAFETY: the caller's promise.
    if unsafe { semaphores::is_shared(semaphore) } {
        // SAFETY: the caller's promise.
        return unsafe { wait_shared(semaphore, ns) };
    }
    // Each turn ends the wait, moves it into another sandbox, or found the semaphore taken by somebody else.
    loop {
        let mut is_taken = false;
        let begin = wait::elapsed();
        let waited = parking::park(WaitKind::Semaphore, semaphore as usize, ns, || {
            // SAFETY: the caller's promise.
            is_taken = unsafe { libc::sem_trywait(semaphore) } == 0;
            is_taken
        });
        match waited {
            None => return Err(ns),
            Some(Waited::Signalled) if is_taken => return Ok(0),
            Some(Waited::Signalled) => ns = wait::left(ns, begin),
            Some(Waited::Moved { left_ns }) => ns = left_ns,
            Some(Waited::TimedOut) => {
                set_errno(libc::ETIMEDOUT);
                return Ok(-1);
            }
            Some(Waited::Interrupted | Waited::Deadlock) => {
                set_errno(libc::EINTR);
                return Ok(-1);
            }
        }
    }
}

/// Waits for a semaphore that other processes may post.
///
/// # Safety
/// `semaphore` is an initialised semaphore.
unsafe fn wait_shared(semaphore: *mut sem_t, mut ns: Option<i64>) -> Result<c_int, Option<i64>> {
    loop {
        let waited = parking::wait_in_kernel(WaitKind::Semaphore, ns, |part_ns| {
            let (tv_sec, tv_nsec) = clock::to_timespec(clock::deadline(kernel::read(libc::CLOCK_REALTIME), part_ns));
            let deadline = timespec { tv_sec, tv_nsec };
            // SAFETY: the caller's promise, and a deadline of ours.
            let result = unsafe { libc::sem_timedwait(semaphore, &deadline) };
            match (result, kernel::errno()) {
                (0, _) => Attempt::Done,
                (_, libc::ETIMEDOUT) => Attempt::TimedOut,
                _ => Attempt::Interrupted,
            }
        });
        let error = match waited {
            None => return Err(ns),
            Some(Waited::Signalled) => return Ok(0),
            Some(Waited::TimedOut) => libc::ETIMEDOUT,
            Some(Waited::Interrupted | Waited::Deadlock) => libc::EINTR,
            Some(Waited::Moved { left_ns }) => {
                ns = left_ns;
                continue;
            }
        };
        set_errno(error);
        return Ok(-1);
    }
}

/// As [`take_back`], for a semaphore without a limit: not every interpreter reads the clock for it, and what one that does not
/// has read before is the program's.
#[inline]
fn take_back_if_read() {
    if crate::host::locks_read_clock() {
        return take_back();
    }
    if let Some(mut call) = Call::enter() {
        let (sandbox, thread) = call.parts();
        sandbox.commit_known(thread, &Registered);
    }
}

/// The interpreter reads the clock before it asks for a semaphore: a reading that is none of the program's.
#[inline]
fn take_back() {
    if let Some(mut call) = Call::enter() {
        let (sandbox, thread) = call.parts();
        sandbox.take_back(thread, &Registered);
    }
}

pub unsafe extern "C" fn sem_trywait(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the argument is the program's.
    unsafe { real::sem_trywait(semaphore) }
}

pub unsafe extern "C" fn sem_trywait_of_interpreter(semaphore: *mut sem_t) -> c_int {
    take_back_if_read();
    // SAFETY: the argument is the interpreter's.
    unsafe { real::sem_trywait(semaphore) }
}

pub unsafe extern "C" fn sem_wait_of_interpreter(semaphore: *mut sem_t) -> c_int {
    take_back_if_read();
    // SAFETY: the argument is the interpreter's.
    unsafe { sem_wait(semaphore) }
}

pub unsafe extern "C" fn sem_timedwait_of_interpreter(semaphore: *mut sem_t, deadline: *const timespec) -> c_int {
    take_back();
    // SAFETY: the arguments are the interpreter's.
    unsafe { sem_timedwait(semaphore, deadline) }
}

pub unsafe extern "C" fn sem_clockwait_of_interpreter(
    semaphore: *mut sem_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    take_back();
    // SAFETY: the arguments are the interpreter's.
    unsafe { sem_clockwait(semaphore, id, deadline) }
}

pub unsafe extern "C" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the program's semaphore.
    if unsafe { libc::sem_trywait(semaphore) } == 0 {
        return 0;
    }
    // SAFETY: the program's semaphore.
    match unsafe { park(semaphore, None) } {
        Ok(result) => result,
        // SAFETY: the argument is the program's.
        Err(_) => unsafe { real::sem_wait(semaphore) },
    }
}

/// # Safety
/// The program's promises to libc.
unsafe fn timed(
    semaphore: *mut sem_t,
    id: clockid_t,
    deadline: *const timespec,
    real: impl FnOnce(*const timespec) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { libc::sem_trywait(semaphore) } == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    let Some(span) = (unsafe { wait::until(id, deadline) }) else { return real(deadline) };
    // SAFETY: the caller's promise.
    match unsafe { park(semaphore, Some(span.ns)) } {
        Ok(result) => result,
        Err(left) => {
            let span = span.shortened(left);
            let result = real(&span.deadline(id));
            if result != 0 && kernel::errno() == libc::ETIMEDOUT {
                span.timed_out();
                set_errno(libc::ETIMEDOUT);
            }
            result
        }
    }
}

pub unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::sem_timedwait(semaphore, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { timed(semaphore, libc::CLOCK_REALTIME, deadline, real) }
}

pub unsafe extern "C" fn sem_clockwait(semaphore: *mut sem_t, id: clockid_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::sem_clockwait(semaphore, id, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { timed(semaphore, id, deadline, real) }
}

pub unsafe extern "C" fn sem_post(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the argument is the program's.
    let result = unsafe { real::sem_post(semaphore) };
    if result == 0 {
        parking::signal(semaphore as usize, 1);
    }
    result
}
