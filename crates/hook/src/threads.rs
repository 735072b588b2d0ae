//! Records of threads: made when a thread starts or is first seen, given back when it ends.

use crate::guard;
use crate::host::Registered;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use hermetic_abi::Text;
use hermetic_engine::{Class, Identity, Seat, Thread};
use hermetic_model::stream::Pedigree;
use hermetic_sys::slot::Arena;
use hermetic_sys::{task, tls};
use std::io;

/// Threads alive at the same time that have a record. Further ones are foreign.
const THREADS_MAX: usize = 16_384;

static RECORDS: Arena<Thread> = Arena::new(THREADS_MAX);

/// The key whose destructor tells that a thread ends. Zero stands for "none yet", real keys are stored plus one.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

/// A controlled thread that lives, for sandboxes that are entered after it began: it takes part in them too.
pub struct Live {
    /// Its number for the kernel; 0 for a free place, -1 for one that is being filled.
    thread: AtomicI32,
    pthread: AtomicU64,
    pedigree: AtomicU64,
    guest: AtomicU64,
    home: AtomicU64,
    is_host: AtomicBool,
}

/// As many as a table of waits has places.
static LIVE: [Live; crate::page::THREADS_MAX] = [const {
    Live {
        thread: AtomicI32::new(0),
        pthread: AtomicU64::new(0),
        pedigree: AtomicU64::new(0),
        guest: AtomicU64::new(0),
        home: AtomicU64::new(0),
        is_host: AtomicBool::new(false),
    }
}; crate::page::THREADS_MAX];

/// The `pthread_t` of threads that are past their last destructor and may not be joined yet; the latest ones are enough.
static ENDING: [AtomicU64; ENDING_MAX] = [const { AtomicU64::new(0) }; ENDING_MAX];
const ENDING_MAX: usize = 64;
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Whether that thread has run its last destructor a short while ago.
pub fn is_ending(pthread: u64) -> bool {
    ENDING.iter().any(|ending| ending.load(Ordering::Relaxed) == pthread)
}

/// The `pthread_t` belongs to nobody any more, or to somebody new.
pub fn forget_ending(pthread: u64) {
    for ending in &ENDING {
        let _ = ending.compare_exchange(pthread, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Live {
    fn identity(&self) -> Identity {
        let [pedigree, guest] = [&self.pedigree, &self.guest].map(|name| Pedigree(name.load(Ordering::Relaxed)));
        Identity { pedigree, guest, home: self.home.load(Ordering::Relaxed) }
    }

    fn set_identity(&self, identity: &Identity) {
        self.pedigree.store(identity.pedigree.0, Ordering::Relaxed);
        self.guest.store(identity.guest.0, Ordering::Relaxed);
        self.home.store(identity.home, Ordering::Relaxed);
    }
}

/// Calls `visit` for each: its number, its `pthread_t`, who it is, and whether it runs interpreted code.
pub fn for_each_live(mut visit: impl FnMut(i32, u64, Identity, bool)) {
    for live in &LIVE {
        let thread = live.thread.load(Ordering::Acquire);
        if thread > 0 {
            let (pthread, is_host) = (live.pthread.load(Ordering::Relaxed), live.is_host.load(Ordering::Relaxed));
            visit(thread, pthread, live.identity(), is_host);
        }
    }
}

/// In a forked child: only the calling thread is left.
pub fn forget_live() {
    for live in &LIVE {
        live.thread.store(0, Ordering::Relaxed);
    }
    LIVE_COUNT.store(0, Ordering::Relaxed);
}

/// How many places of `LIVE` are taken.
static LIVE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether there are any controlled threads beside the one that enters sandboxes.
pub fn has_live() -> bool {
    LIVE_COUNT.load(Ordering::Acquire) > 0
}

fn note_live(record: &Thread) {
    let is_free = |live: &&Live| live.thread.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(live) = LIVE.iter().find(is_free) else { return };
    LIVE_COUNT.fetch_add(1, Ordering::AcqRel);
    // SAFETY: no preconditions.
    live.pthread.store(unsafe { libc::pthread_self() }, Ordering::Relaxed);
    live.set_identity(&record.identity);
    live.is_host.store(record.seat.is_host, Ordering::Relaxed);
    live.thread.store(task::own_id(), Ordering::Release);
}

fn forget_own() {
    let own = task::own_id();
    if let Some(live) = LIVE.iter().find(|live| live.thread.load(Ordering::Relaxed) == own) {
        live.thread.store(0, Ordering::Release);
        LIVE_COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reserves memory and the exit key.
pub fn prepare() -> io::Result<()> {
    RECORDS.prepare()?;
    if EXIT_KEY.load(Ordering::Acquire) == 0 {
        let mut key = 0;
        // SAFETY: the key is valid for writing, and `ended` has the destructor's type.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(ended)) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        EXIT_KEY.store(key + 1, Ordering::Release);
    }
    Ok(())
}

/// A record for a thread that is not known: a foreign one.
pub fn adopt() -> Option<*mut Thread> {
    let record = RECORDS.take()?;
    // SAFETY: the arena gave this record to us alone (H8); writing it whole drops nothing.
    unsafe { record.write(Thread::new(Class::Foreign)) };
    watch(record);
    Some(record)
}

/// The calling thread's record; made if there is none. Not for hooks.
pub fn current() -> Option<*mut Thread> {
    let local = tls::local();
    // SAFETY: the record belongs to this thread (H2).
    let local = unsafe { &mut *local };
    if local.thread.is_null() {
        local.thread = adopt()?.cast();
    }
    Some(local.thread.cast())
}

/// The name whose hidden look-up was answered with a placeholder, once; empty where there is none. For hooks.
pub fn take_pending_name() -> Text {
    match own_record() {
        Some(thread) if thread.pending_name.len > 0 => core::mem::take(&mut thread.pending_name),
        _ => Text::new(),
    }
}

/// The calling thread's place in a table of waits, if it has a record. For hooks.
pub fn seat() -> Option<Seat> {
    own_record().map(|record| record.seat)
}

/// The calling thread's record if it has one.
fn own_record() -> Option<&'static mut Thread> {
    // SAFETY: the record belongs to this thread (H2).
    let record = unsafe { (*tls::local()).thread.cast::<Thread>() };
    // SAFETY: null, or this thread's own record (H8), which no caller keeps.
    unsafe { record.as_mut() }
}

/// A record for a thread that is about to start.
pub fn reserve() -> Option<*mut Thread> {
    let record = RECORDS.take()?;
    // SAFETY: as in `adopt`.
    unsafe { record.write(Thread::new(Class::Foreign)) };
    Some(record)
}

/// Gives a record back whose thread never started.
pub fn release(record: *mut Thread) {
    // SAFETY: the caller got it from `reserve` and nobody else has seen it.
    unsafe { RECORDS.give_back(record) };
}

/// The calling thread, which has just started, takes its record.
pub fn begin(record: *mut Thread) {
    // SAFETY: the record belongs to this thread (H2).
    unsafe { (*tls::local()).thread = record.cast() };
    // SAFETY: no preconditions.
    forget_ending(unsafe { libc::pthread_self() });
    // SAFETY: this thread's own record (H8).
    note_live(unsafe { &*record });
    watch(record);
}

/// Leaves a mark for a later call of this thread.
pub fn mark() {
    // SAFETY: the record belongs to this thread (H2).
    unsafe { (*tls::local()).mark = 1 };
}

/// Takes the mark away; true if there was one.
pub fn take_mark() -> bool {
    let local = tls::local();
    // SAFETY: the record belongs to this thread (H2).
    core::mem::take(unsafe { &mut (*local).mark }) != 0
}

fn watch(record: *mut Thread) {
    let Some(key) = EXIT_KEY.load(Ordering::Acquire).checked_sub(1) else { return };
    // SAFETY: the key is live. Keys beyond the first 32 of a process cost glibc an allocation here; ours is made early, and
    // where it is not, this is a thread's start or first call, never malloc's.
    unsafe { libc::pthread_setspecific(key, record.cast()) };
}

unsafe extern "C" fn ended(record: *mut c_void) {
    let record = record.cast::<Thread>();
    let local = tls::local();
    // SAFETY: the destructor runs in the ending thread, whose record this is (H2).
    let local = unsafe { &mut *local };
    local.thread = core::ptr::null_mut();
    forget_own();
    let ending = &ENDING[ENDED.fetch_add(1, Ordering::Relaxed) % ENDING_MAX];
    // SAFETY: no preconditions.
    ending.store(unsafe { libc::pthread_self() }, Ordering::Relaxed);
    local.bypass = 0;
    // SAFETY: the record is this thread's own until it is given back below (H8).
    crate::parking::end_thread(unsafe { &mut *record });
    if let Some(sandbox) = guard::active() {
        // SAFETY: the record is this thread's own until it is given back below (H8).
        sandbox.end(unsafe { &mut *record }, &Registered);
    }
    // SAFETY: nothing uses the record after this.
    unsafe { RECORDS.give_back(record) };
}
