//! The kernel's wait queue on a word of memory, between threads and between processes.

use core::sync::atomic::AtomicU32;

/// How a futex wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// By a wake, or because the word had changed already.
    Woken,
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

/// Waits while the word holds `expected`, for at most `timeout_ns`.
pub fn wait(word: &AtomicU32, expected: u32, timeout_ns: i64) -> Woken {
    let timeout = libc::timespec { tv_sec: timeout_ns / 1_000_000_000, tv_nsec: timeout_ns % 1_000_000_000 };
    let address = core::ptr::from_ref(word);
    // SAFETY: the word outlives the call, and the timeout is valid. The process-shared form also works in private memory.
    let result = unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAIT, expected, &raw const timeout) };
    match (result, crate::clock::errno()) {
        (-1, libc::ETIMEDOUT) => Woken::TimedOut,
        (-1, libc::EINTR) => Woken::Interrupted,
        _ => Woken::Woken,
    }
}

/// Wakes up to `count` waiters of the word.
pub fn wake(word: &AtomicU32, count: i32) {
    let address = core::ptr::from_ref(word);
    // SAFETY: the word outlives the call; waking touches no memory.
    unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE, count) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn a_wait_ends_by_a_wake_a_change_or_the_time() {
        static WORD: AtomicU32 = AtomicU32::new(0);
        assert_eq!(wait(&WORD, 1, 1_000_000_000), Woken::Woken, "the word differs");
        assert_eq!(wait(&WORD, 0, 1), Woken::TimedOut);
        let waiter = std::thread::spawn(|| while wait(&WORD, 0, 60_000_000_000) != Woken::Woken {});
        WORD.store(1, Ordering::Release);
        wake(&WORD, i32::MAX);
        waiter.join().expect("it ends");
    }
}
