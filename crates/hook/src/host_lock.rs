//! Which condition and mutex the interpreter's lock is made of.
//!
//! CPython gives its lock away by three calls: it locks a mutex, signals a condition, unlocks the mutex. Whoever would take his
//! turn then must recognise the last one. A wait for the lock names both, but comes late: the first threads have had their
//! turns by then. So the thread that attaches watches the first time that it gives the lock away itself, before any other
//! thread can run. CPython signals one more condition, when it takes its lock, but with a second mutex inside the first.

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use hermetic_sys::tls;
use libc::{pthread_cond_t, pthread_mutex_t};

static CONDITION: AtomicPtr<pthread_cond_t> = AtomicPtr::new(core::ptr::null_mut());
static MUTEX: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(core::ptr::null_mut());
/// A thread watches itself.
static IS_LEARNING: AtomicBool = AtomicBool::new(false);

/// The calling thread, which holds none of the interpreter's mutexes, watches itself from now on.
pub fn learn() {
    if crate::host::image() == 0 || !MUTEX.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: the record belongs to this thread (H2).
    unsafe { (*tls::local()).watched = 1 };
    IS_LEARNING.store(true, Ordering::Release);
}

/// A wait for the lock: it says what the lock is made of.
pub fn note(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) {
    CONDITION.store(condition, Ordering::Relaxed);
    MUTEX.store(mutex, Ordering::Relaxed);
}

/// How many of the interpreter's mutexes the calling thread holds, plus one; None where it does not watch itself.
#[inline]
fn watched() -> Option<&'static mut u32> {
    if !IS_LEARNING.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the record belongs to this thread, and the borrow ends before anybody else here makes one (H2).
    let watched = unsafe { &mut (*tls::local()).watched };
    (*watched != 0).then_some(watched)
}

/// The interpreter has locked a mutex of its own.
#[inline]
pub fn note_locked() {
    if let Some(watched) = watched() {
        *watched += 1;
    }
}

/// The interpreter signals a condition. Where that gives its lock away the calling thread is marked.
#[inline]
pub fn note_signalled(condition: *mut pthread_cond_t) {
    const ONE_HELD: u32 = 2;
    if CONDITION.load(Ordering::Relaxed).is_null() && watched().is_some_and(|watched| *watched == ONE_HELD) {
        CONDITION.store(condition, Ordering::Relaxed);
    }
    if CONDITION.load(Ordering::Relaxed) == condition {
        crate::threads::mark();
    }
}

/// The interpreter is about to unlock a mutex of its own.
#[inline]
pub fn note_unlocking(mutex: *mut pthread_mutex_t) {
    let Some(watched) = watched() else { return };
    *watched = (*watched - 1).max(1);
    if !CONDITION.load(Ordering::Relaxed).is_null() && *watched == 1 {
        if MUTEX.load(Ordering::Relaxed).is_null() {
            MUTEX.store(mutex, Ordering::Relaxed);
        }
        *watched = 0;
        IS_LEARNING.store(false, Ordering::Relaxed);
    }
}

/// Whether the calling thread has just given the interpreter's lock away, by unlocking this mutex at last.
#[inline]
pub fn is_given_away(mutex: *mut pthread_mutex_t) -> bool {
    MUTEX.load(Ordering::Relaxed) == mutex && crate::threads::take_mark()
}
