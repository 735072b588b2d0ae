//! `syscall(SYS_futex, …)`: how Rust, and much else that does without libc's locks, waits and wakes.

use super::poll::Limit;
use crate::parking::{self, Attempt, Waited};
use crate::wait as limits;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, Ordering};
use hermetic_journal::WaitKind;
use hermetic_sys::clock::set_errno;
use hermetic_sys::futex::{self, Woken};
use libc::timespec;

/// Answers a futex call that waits or wakes. None: it is not ours, make it really.
///
/// # Safety
/// The program's promises to the kernel: `word` is an aligned word of its memory, and a wait's `fourth` argument is null or
/// points to a timespec.
pub unsafe fn answer(word: *const u32, operation: c_int, value: u32, fourth: c_long, mask: u32) -> Option<c_long> {
    let is_shared = operation & libc::FUTEX_PRIVATE_FLAG == 0;
    let is_wall = operation & libc::FUTEX_CLOCK_REALTIME != 0;
    match operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        // Those who wait for a word that other processes may wake wait in the kernel.
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET if is_shared => None,
        libc::FUTEX_WAKE => wake(word, operation, value),
        libc::FUTEX_WAKE_BITSET if mask == u32::MAX => wake(word, operation, value),
        libc::FUTEX_WAIT => {
            // SAFETY: the caller's promise.
            let limit = unsafe { Limit::from_timespec(fourth as *const timespec) }?;
            // SAFETY: the caller's promise.
            unsafe { wait(word, value, limit.as_ns(), is_shared) }
        }
        libc::FUTEX_WAIT_BITSET if mask == u32::MAX => {
            let id = if is_wall { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            let deadline = fourth as *const timespec;
            let ns = match deadline.is_null() {
                true => None,
                // SAFETY: the caller's promise.
                false => Some(unsafe { limits::until(id, deadline) }?.ns),
            };
            // SAFETY: the caller's promise.
            unsafe { wait(word, value, ns, is_shared) }
        }
        _ => None,
    }
}

/// Wakes parked waiters, then as many real ones as are still wanted.
fn wake(word: *const u32, operation: c_int, count: u32) -> Option<c_long> {
    let parked = parking::signal(word as usize, count as usize);
    if parked == 0 {
        return None;
    }
    let rest = count - parked as u32;
    let operation = libc::FUTEX_WAKE | operation & libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking touches no memory.
    let real = unsafe { libc::syscall(libc::SYS_futex, word, operation, rest) };
    Some(parked as c_long + real.max(0))
}

/// # Safety
/// `word` is an aligned word of the program's memory.
unsafe fn wait(word: *const u32, expected: u32, ns: Option<i64>, is_shared: bool) -> Option<c_long> {
    if is_shared {
        // SAFETY: the caller's promise.
        unsafe { wait_shared(word, expected, ns) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { park(word, expected, ns) }
    }
}

/// # Safety
/// `word` is an aligned word of the program's memory.
unsafe fn wait_shared(word: *const u32, expected: u32, mut ns: Option<i64>) -> Option<c_long> {
    // SAFETY: the caller's promise; other threads write it atomically.
    let word = unsafe { &*word.cast::<AtomicU32>() };
    loop {
        if word.load(Ordering::SeqCst) != expected {
            set_errno(libc::EAGAIN);
            return Some(-1);
        }
        let waited =
            parking::wait_in_kernel(WaitKind::Lock, ns, |part_ns| match futex::wait(word, expected, part_ns) {
                Woken::Woken => Attempt::Done,
                Woken::TimedOut => Attempt::TimedOut,
                Woken::Interrupted => Attempt::Interrupted,
            });
        match result_of(waited?) {
            Ok(returned) => return Some(returned),
            Err(left_ns) => ns = left_ns,
        }
    }
}

/// # Safety
/// `word` is an aligned word of the program's memory.
unsafe fn park(word: *const u32, expected: u32, mut ns: Option<i64>) -> Option<c_long> {
    loop {
        let mut has_changed = false;
        let waited = parking::park(WaitKind::Lock, word as usize, ns, || {
            // SAFETY: the caller's promise; other threads write it atomically.
            let now = unsafe { (*word.cast::<AtomicU32>()).load(Ordering::SeqCst) };
            has_changed = now != expected;
            has_changed
        });
        let waited = waited?;
        if has_changed && waited == Waited::Signalled {
            set_errno(libc::EAGAIN);
            return Some(-1);
        }
        match result_of(waited) {
            Ok(returned) => return Some(returned),
            Err(left_ns) => ns = left_ns,
        }
    }
}

/// What the system call returns after such a wait, or the time that is left of one that has to be made again.
fn result_of(waited: Waited) -> Result<c_long, Option<i64>> {
    let error = match waited {
        Waited::Signalled => return Ok(0),
        Waited::TimedOut => libc::ETIMEDOUT,
        Waited::Interrupted | Waited::Deadlock => libc::EINTR,
        Waited::Moved { left_ns } => return Err(left_ns),
    };
    set_errno(error);
    Ok(-1)
}
