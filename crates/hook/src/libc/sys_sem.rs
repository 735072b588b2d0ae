//! `<sys/sem.h>`: System V semaphores.
//!
//! A wait is ended by threads of this process at once. What another process does to the set is noticed when the wait's time
//! has come: the set is tried once more then.

use super::poll::Limit;
use crate::parking::{self, Waited};
use crate::table::hooks;
use crate::wait;
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use hermetic_sys::clock::{errno, set_errno};
use libc::{sembuf, size_t, timespec};

// `semctl` is variadic in C; on the machines that we know its last argument travels in the same register either way.
hooks! {
    semop(set: c_int, operations: *mut sembuf, count: size_t) -> c_int;
    semtimedop(set: c_int, operations: *mut sembuf, count: size_t, timeout: *const timespec) -> c_int;
    semctl(set: c_int, number: c_int, command: c_int, argument: usize) -> c_int;
}

/// More operations at once than this wait really; the kernel itself stops at 500.
const OPERATIONS_MAX: usize = 16;

/// What those wait for who wait for a set. Two low bits set, unlike every address and every channel of a join.
fn channel(set: c_int) -> usize {
    (set as u32 as usize) << 2 | 3
}

/// The operations with the wish not to wait added.
///
/// # Safety
/// `operations` is valid for `count` of them.
unsafe fn impatient(operations: *const sembuf, count: size_t) -> Option<[sembuf; OPERATIONS_MAX]> {
    if operations.is_null() || count == 0 || count > OPERATIONS_MAX {
        return None;
    }
    let mut copy = [sembuf { sem_num: 0, sem_op: 0, sem_flg: 0 }; OPERATIONS_MAX];
    // SAFETY: the caller's promise.
    let given = unsafe { core::slice::from_raw_parts(operations, count) };
    if given.iter().any(|operation| operation.sem_flg & libc::IPC_NOWAIT as i16 != 0) {
        return None;
    }
    for (copy, given) in copy.iter_mut().zip(given) {
        *copy = sembuf { sem_flg: given.sem_flg | libc::IPC_NOWAIT as i16, ..*given };
    }
    Some(copy)
}

pub unsafe extern "C" fn semop(set: c_int, operations: *mut sembuf, count: size_t) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe { semtimedop(set, operations, count, core::ptr::null()) }
}

pub unsafe extern "C" fn semtimedop(
    set: c_int,
    operations: *mut sembuf,
    count: size_t,
    timeout: *const timespec,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let ours = unsafe { Limit::from_timespec(timeout) }.zip(unsafe { impatient(operations, count) });
    let result = match ours.filter(|_| crate::guard::active().is_some()) {
        // SAFETY: the arguments are the program's, and a copy of them.
        Some((limit, mut impatient)) => unsafe { wait(set, operations, &mut impatient[..count], limit) },
        // SAFETY: the arguments are the program's.
        None => unsafe { real::semtimedop(set, operations, count, timeout) },
    };
    if result == 0 {
        parking::signal(channel(set), usize::MAX);
    }
    result
}

/// # Safety
/// `operations` is valid for as many as `impatient` holds.
unsafe fn wait(set: c_int, operations: *mut sembuf, impatient: &mut [sembuf], limit: Limit) -> c_int {
    let count = impatient.len();
    let mut attempt = || {
        // SAFETY: the slice is as long as it says.
        unsafe { real::semtimedop(set, impatient.as_mut_ptr(), count, core::ptr::null()) }
    };
    let mut left_ns = limit.as_ns();
    loop {
        let mut result = -1;
        let mut is_over = false;
        let begin = wait::elapsed();
        let waited = parking::park(WaitKind::Semaphore, channel(set), left_ns, || {
            result = attempt();
            is_over = result == 0 || errno() != libc::EAGAIN;
            is_over
        });
        match waited {
            _ if is_over => return result,
            // SAFETY: the arguments are the program's.
            None => return unsafe { really(set, operations, count, left_ns) },
            Some(Waited::TimedOut) => return attempt(),
            Some(Waited::Interrupted | Waited::Deadlock) => {
                set_errno(libc::EINTR);
                return -1;
            }
            Some(Waited::Signalled) => left_ns = wait::left(left_ns, begin),
            Some(Waited::Moved { left_ns: left }) => left_ns = left,
        }
    }
}

/// # Safety
/// The program's promises to `semtimedop`.
unsafe fn really(set: c_int, operations: *mut sembuf, count: size_t, left_ns: Option<i64>) -> c_int {
    let span = left_ns.and_then(wait::lasting);
    let left = left_ns.and_then(|ns| super::poll::to_timespec(Limit::Nanoseconds(ns)));
    let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the caller's promise, and what is left of the time.
    let result = unsafe { real::semtimedop(set, operations, count, left) };
    if let (true, Some(span)) = (result != 0 && errno() == libc::EAGAIN, span) {
        span.timed_out();
        set_errno(libc::EAGAIN);
    }
    result
}

pub unsafe extern "C" fn semctl(set: c_int, number: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::semctl(set, number, command, argument) };
    // Values that are set, and a set that is removed, end waits too. `signal` keeps errno.
    parking::signal(channel(set), usize::MAX);
    result
}
