//! `<pthread.h>`: locks for one writer or many readers.

use super::pthread::lock_until;
use crate::parking;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use libc::{clockid_t, pthread_rwlock_t, timespec};

hooks! {
    pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
    pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
    pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, deadline: *const timespec) -> c_int;
    pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, deadline: *const timespec) -> c_int;
    pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, id: clockid_t, deadline: *const timespec) -> c_int;
    pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, id: clockid_t, deadline: *const timespec) -> c_int;
    pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int;
}

/// # Safety
/// The program's promises to `pthread_rwlock_rdlock`.
unsafe fn try_read(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_rwlock_tryrdlock(lock) }
}

/// # Safety
/// The program's promises to `pthread_rwlock_wrlock`.
unsafe fn try_write(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_rwlock_trywrlock(lock) }
}

pub unsafe extern "C" fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || (unsafe { try_read(lock) } == 0).then_some(0);
    // SAFETY: the argument is the program's; libc also names what is wrong with it.
    parking::in_kernel(WaitKind::Lock, attempt, || unsafe { real::pthread_rwlock_rdlock(lock) })
}

pub unsafe extern "C" fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || (unsafe { try_write(lock) } == 0).then_some(0);
    // SAFETY: the argument is the program's; libc also names what is wrong with it.
    parking::in_kernel(WaitKind::Lock, attempt, || unsafe { real::pthread_rwlock_wrlock(lock) })
}

pub unsafe extern "C" fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || unsafe { try_read(lock) };
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_rwlock_timedrdlock(lock, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(lock as usize, libc::CLOCK_REALTIME, deadline, attempt, real) }
}

pub unsafe extern "C" fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, deadline: *const timespec) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || unsafe { try_write(lock) };
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_rwlock_timedwrlock(lock, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(lock as usize, libc::CLOCK_REALTIME, deadline, attempt, real) }
}

pub unsafe extern "C" fn pthread_rwlock_clockrdlock(
    lock: *mut pthread_rwlock_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || unsafe { try_read(lock) };
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_rwlock_clockrdlock(lock, id, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(lock as usize, id, deadline, attempt, real) }
}

pub unsafe extern "C" fn pthread_rwlock_clockwrlock(
    lock: *mut pthread_rwlock_t,
    id: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the program's lock.
    let attempt = || unsafe { try_write(lock) };
    // SAFETY: the program's arguments, or a deadline of ours.
    let real = |deadline: *const timespec| unsafe { real::pthread_rwlock_clockwrlock(lock, id, deadline) };
    // SAFETY: the arguments are the program's.
    unsafe { lock_until(lock as usize, id, deadline, attempt, real) }
}

pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the argument is the program's.
    let error = unsafe { real::pthread_rwlock_unlock(lock) };
    if error == 0 {
        // All readers may go on together; who is too late parks again.
        parking::signal(lock as usize, usize::MAX);
    }
    error
}
