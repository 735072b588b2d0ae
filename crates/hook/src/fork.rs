//! Forks: locks are held across them, and the child becomes somebody of its own.

use crate::host::Registered;
use crate::libc::dirent as listings;
use crate::{api, attach, children, floor, follower, guard, openssl, parking, pipes, threads, timers};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, Ordering};
use hermetic_engine::sandbox::Held;
use hermetic_sys::task;

/// The process that this memory belongs to. A child of vfork runs in its parent's memory until it execs.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// What the forking thread carries over the fork.
struct Carried(UnsafeCell<Option<Baggage>>);

struct Baggage {
    #[allow(dead_code, reason = "held, not read")]
    locks: (Vec<Held<'static>>, floor::Locks, listings::Held, openssl::Held, attach::Held, api::Held),
    /// Number of the child among its parent's children, if the fork belongs to a sandbox.
    ordinal: Option<u64>,
}

// SAFETY: touched only by the thread that forks, between `before` and `after`, while it holds all locks.
unsafe impl Sync for Carried {}

static CARRIED: Carried = Carried(UnsafeCell::new(None));

/// Registers the handlers, once.
pub fn prepare() {
    // SAFETY: no preconditions.
    let pid = unsafe { libc::getpid() };
    if OWNER.swap(pid, Ordering::AcqRel) == 0 {
        // SAFETY: the handlers have the right type and stay loaded: the library is never closed.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
        children::look();
    }
}

/// The number of this process, without asking the kernel; in a child of vfork its parent's.
pub fn owner() -> i32 {
    OWNER.load(Ordering::Relaxed)
}

/// Whether this process runs in another's memory (after vfork): it must change nothing there.
pub fn is_borrowed() -> bool {
    // SAFETY: no preconditions; glibc does not cache the number.
    unsafe { libc::getpid() != OWNER.load(Ordering::Relaxed) }
}

unsafe extern "C" fn before() {
    children::note_start();
    let ordinal = guard::Call::enter().map(|mut call| {
        let (sandbox, thread) = call.parts();
        sandbox.next_child(thread, &Registered)
    });
    guard::real_begin();
    // From the outermost lock to the innermost, as everybody else takes them.
    let (desk, scan, openssl, listings) = (api::lock(), attach::lock(), openssl::lock(), listings::lock());
    let sandboxes = api::sandboxes().map(|sandbox| sandbox.lock_all()).collect();
    let locks = (sandboxes, floor::lock(), listings, openssl, scan, desk);
    // SAFETY: this thread holds all locks, so it is the only one here.
    unsafe { *CARRIED.0.get() = Some(Baggage { locks, ordinal }) };
}

fn unpack() -> Option<u64> {
    // SAFETY: as in `before`; the locks are given back when the value is dropped.
    let baggage = unsafe { (*CARRIED.0.get()).take() };
    let ordinal = baggage.as_ref().and_then(|baggage| baggage.ordinal);
    drop(baggage);
    guard::real_end();
    ordinal
}

unsafe extern "C" fn after_in_parent() {
    unpack();
    follower::forget_accepted();
}

unsafe extern "C" fn after_in_child() {
    // SAFETY: no preconditions.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
    task::forget_known_id();
    let ordinal = unpack();
    for sandbox in api::sandboxes() {
        sandbox.forget_journal();
    }
    pipes::forget_all();
    timers::forget_all();
    threads::forget_live();
    follower::become_forked();
    let Some(ordinal) = ordinal else { return };
    let Some(mut call) = guard::Call::enter() else { return };
    let (sandbox, thread) = call.parts();
    sandbox.become_child(thread, ordinal);
    parking::enter_child(thread);
}
