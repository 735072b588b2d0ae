//! `syscall(SYS_futex, …)`: how Rust, and much else that does without libc's locks, waits and wakes.

use super::poll::Limit;
use crate::parking::{self, Waited};
use crate::wait;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, Ordering};
use hermetic_sys::clock::set_errno;
use libc::timespec;

/// Answers a futex call that waits or wakes. None: it is not ours, make it really.
///
/// # Safety
/// The program's promises to the kernel: `word` is an aligned word of its memory, and a wait's `fourth` argument is null or
/// points to a timespec.
pub unsafe fn futex(word: *const u32, operation: c_int, value: u32, fourth: c_long, mask: u32) -> Option<c_long> {
    // A word that other processes may wake is the kernel's business.
    if operation & libc::FUTEX_PRIVATE_FLAG == 0 {
        return None;
    }
    let is_wall = operation & libc::FUTEX_CLOCK_REALTIME != 0;
    match operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAKE => wake(word, operation, value),
        libc::FUTEX_WAKE_BITSET if mask == u32::MAX => wake(word, operation, value),
        libc::FUTEX_WAIT => {
            // SAFETY: the caller's promise.
            let limit = unsafe { Limit::from_timespec(fourth as *const timespec) }?;
            // SAFETY: the caller's promise.
            unsafe { park(word, value, limit.as_ns()) }
        }
        libc::FUTEX_WAIT_BITSET if mask == u32::MAX => {
            let id = if is_wall { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            let deadline = fourth as *const timespec;
            let ns = match deadline.is_null() {
                true => None,
                // SAFETY: the caller's promise.
                false => Some(unsafe { wait::until(id, deadline) }?.ns),
            };
            // SAFETY: the caller's promise.
            unsafe { park(word, value, ns) }
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
unsafe fn park(word: *const u32, expected: u32, mut ns: Option<i64>) -> Option<c_long> {
    loop {
        let mut has_changed = false;
        let waited = parking::park(word as usize, ns, || {
            // SAFETY: the caller's promise; other threads write it atomically.
            let now = unsafe { (*word.cast::<AtomicU32>()).load(Ordering::SeqCst) };
            has_changed = now != expected;
            has_changed
        });
        let error = match waited? {
            Waited::Signalled if has_changed => libc::EAGAIN,
            Waited::Signalled => return Some(0),
            Waited::TimedOut => libc::ETIMEDOUT,
            Waited::Interrupted | Waited::Deadlock => libc::EINTR,
            Waited::Moved { left_ns } => {
                ns = left_ns;
                continue;
            }
        };
        set_errno(error);
        return Some(-1);
    }
}
