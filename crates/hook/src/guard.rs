//! How every hook begins: is there a sandbox, and is this call part of it?
//!
//! A [`Call`] exists for the few instructions in which a hook asks the engine. While it does, everything that this thread
//! calls is real, so the engine, the host adapter and the libc functions below us never come back here (invariant H5). It
//! must be gone before a hook waits: no destructor may sit across a cancellation point (invariant H6).

use crate::threads;
use core::sync::atomic::{AtomicPtr, Ordering};
use hermetic_engine::{Sandbox, Thread};
use hermetic_sys::tls::{self, Local};

/// The sandbox of the moment, or null. Entering and leaving flip this pointer and nothing else.
static ACTIVE: AtomicPtr<Sandbox> = AtomicPtr::new(core::ptr::null_mut());

/// Makes a sandbox the active one, or none. Returns the one before.
pub fn activate(sandbox: Option<&'static Sandbox>) -> Option<&'static Sandbox> {
    let new = sandbox.map_or(core::ptr::null_mut(), |sandbox| core::ptr::from_ref(sandbox).cast_mut());
    let old = ACTIVE.swap(new, Ordering::AcqRel);
    // SAFETY: only addresses of sandboxes that live for ever are stored (H7).
    unsafe { old.as_ref() }
}

/// The active sandbox, whoever asks.
pub fn active() -> Option<&'static Sandbox> {
    // SAFETY: as in `activate` (H7).
    unsafe { ACTIVE.load(Ordering::Acquire).as_ref() }
}

/// A hooked call that belongs to a sandbox.
pub struct Call {
    pub sandbox: &'static Sandbox,
    thread: *mut Thread,
    local: *mut Local,
}

impl Call {
    /// For calls whose answer depends on who asks: clocks, waits, entropy. Foreign threads get the real thing.
    #[inline(always)]
    pub fn enter() -> Option<Call> {
        let sandbox = active()?;
        let local = tls::local();
        // SAFETY: the record belongs to this thread (H2).
        let record = unsafe { &mut *local };
        let thread = record.thread.cast::<Thread>();
        if record.bypass != 0 || thread.is_null() {
            return None;
        }
        // SAFETY: a thread's record lives until the thread ends, and only this thread uses it (H8).
        if !unsafe { (*thread).is_controlled() } {
            return None;
        }
        record.bypass = 1;
        Some(Call { sandbox, thread, local })
    }

    /// For calls that are judged whoever makes them, unless the sandbox is for its own threads: the network. A foreign thread
    /// gets a record on its first one.
    pub fn enter_any() -> Option<Call> {
        let sandbox = active()?;
        let local = tls::local();
        // SAFETY: the record belongs to this thread (H2).
        let record = unsafe { &mut *local };
        if record.bypass != 0 {
            return None;
        }
        if record.thread.is_null() {
            record.thread = threads::adopt()?.cast();
        }
        let thread = record.thread.cast::<Thread>();
        // SAFETY: a thread's record lives until the thread ends, and only this thread uses it (H8).
        if sandbox.is_for_own_threads() && !unsafe { (*thread).is_controlled() } {
            return None;
        }
        record.bypass = 1;
        Some(Call { sandbox, thread, local })
    }

    /// The calling thread's record.
    #[inline(always)]
    pub fn thread(&mut self) -> &mut Thread {
        // SAFETY: only this thread uses its record, and `&mut self` makes the borrow exclusive (H8).
        unsafe { &mut *self.thread }
    }

    /// Both at once, for the engine's calls.
    #[inline(always)]
    pub fn parts(&mut self) -> (&'static Sandbox, &mut Thread) {
        let sandbox = self.sandbox;
        (sandbox, self.thread())
    }
}

impl Drop for Call {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the record belongs to this thread (H2).
        unsafe { (*self.local).bypass = 0 };
    }
}

/// From now on everything that this thread does is real, until the matching [`real_end`].
pub fn real_begin() {
    // SAFETY: the record belongs to this thread (H2).
    unsafe { (*tls::local()).bypass += 1 };
}

/// See [`real_begin`].
pub fn real_end() {
    let local = tls::local();
    // SAFETY: the record belongs to this thread (H2).
    let record = unsafe { &mut *local };
    record.bypass = record.bypass.saturating_sub(1);
}
