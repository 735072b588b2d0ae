//! The clock page: what all processes of a sandbox share, its clocks and its table of waits.
//!
//! The page lies in memory that forked children inherit and other children open by its descriptor. Its lock is a futex that
//! names its holder, so that a holder which was killed does not stop the rest. While a thread holds the lock its signals
//! wait: a handler that posts a semaphore must not come back here.

use crate::children::Existing;
use crate::front::{self, Front};
use crate::inherit::Inheritance;
use crate::jumps::Log;
use crate::outside::Ports;
use crate::{api, guard};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use hermetic_engine::order::Order;
use hermetic_engine::scheduler::{Entry, Scheduler};
use hermetic_engine::waits::Pace;
use hermetic_sys::task::Name;
use hermetic_sys::{futex, task};
use std::sync::MutexGuard;

/// Threads of all processes of a sandbox. Further ones wait in real time.
pub const THREADS_MAX: usize = 1024;
/// Processes of a sandbox. Further ones are external.
pub const PROCESSES_MAX: usize = 128;

/// Changes with every change to the page's layout, or to what its fields mean.
pub const PAGE_VERSION: u32 = 9;

/// Shared memory; all-zero bytes are a valid, unused page.
#[repr(C)]
pub struct Page {
    /// Lies in a file of its own, which can be given a name: see [`front`].
    pub front: Front,
    pub version: AtomicU32,
    /// The creator's descriptor of the front's file.
    front_fd: AtomicI32,
    lock: AtomicU32,
    /// Which sandbox the page belongs to now, as its creator numbers them.
    pub generation: AtomicU64,
    /// Places that were ever used in this sandbox.
    pub seats: AtomicU32,
    pub inheritance: Inheritance,
    /// Whether a child was seen that takes no part: then there is something to tell at the end.
    pub has_externals: AtomicU32,
    /// Number of the first thread of the sandbox's own process that lost its turn, plus one, while there is that to tell.
    pub lost_turn: AtomicU32,
    pub existing: Existing,
    /// Ports on which somebody inside listens.
    pub ports: Ports,
    table: UnsafeCell<Table>,
    cells: [Cell; THREADS_MAX],
}

// SAFETY: the table is reached through `Locked` only, everything else is atomic.
unsafe impl Sync for Page {}

/// What the lock protects.
#[repr(C)]
pub struct Table {
    pub entries: [Entry; THREADS_MAX],
    /// Places in use are below this.
    pub high: u32,
    pub batons: [u32; PROCESSES_MAX],
    /// Process numbers; 0 for a free place.
    pub processes: [i32; PROCESSES_MAX],
    pub choices: u64,
    pub seed: u64,
    /// Real and virtual time when following began; the real one is 0 while time does not follow.
    pub follow_real_ns: i64,
    pub follow_elapsed_ns: i64,
    /// Real time since which nobody can ever run again, or 0.
    pub deadlock_real_ns: i64,
    /// Since then a thread was seen that the table does not know and that may end it.
    pub may_others_act: bool,
    /// The child for whose sake it follows, as it was last seen.
    pub follow_child: i32,
    /// Children that take no part, and since when they were seen.
    pub externals: [External; EXTERNALS_MAX],
    /// Why time moved.
    pub log: Log,
}

/// Children that take no part and are told of; further ones are not.
pub const EXTERNALS_MAX: usize = 16;

/// A child that takes no part in the sandbox, or not yet.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct External {
    /// 0 for a free place.
    pub process: i32,
    /// It was seen for so long that it is not just starting.
    pub is_settled: bool,
    /// A finding names it.
    pub is_told: bool,
    /// The kernel's monotonic clock when it was first seen.
    pub since_ns: i64,
    pub name: Name,
}

/// What belongs to a place and needs no lock.
#[repr(C)]
pub struct Cell {
    /// Changes whenever its thread shall look at its entry again.
    pub bell: AtomicU32,
    pub process: AtomicI32,
    /// 0 while the thread has not begun.
    pub thread: AtomicI32,
    /// Of the thread in its process, in order of their start; for people.
    pub number: AtomicU32,
    /// Slices the kernel had given when the thread was first seen asleep outside of all hooks, plus one; 0 for never.
    pub suspect: AtomicU64,
    /// When that was, on the kernel's monotonic clock.
    pub suspect_ns: AtomicI64,
    /// The thread waits in `ppoll`, and hears only this descriptor of its process; -1 for none.
    pub pipe: AtomicI32,
    /// The thread itself said that it was going to wait in the kernel. Where it did not, it is asleep only for as long as it has
    /// not run since it was seen so.
    pub is_announced: AtomicU32,
    /// It waits for its bell and nothing else.
    pub is_parked: AtomicU32,
    /// A signal was sent to the thread or its process: whether it still sleeps for its bell alone, only the kernel knows.
    pub is_signalled: AtomicU32,
    /// The thread has come back from the kernel and wants the lock to say so; it may sleep for that lock.
    pub is_back: AtomicU32,
    /// The thread waits for the page's lock: the kernel has it asleep, and yet it is about to do something.
    pub is_locking: AtomicU32,
    /// Its descriptors were found to lead nowhere but to this process, so nobody outside will end its wait.
    pub is_inside: AtomicU32,
    /// How often it was told of a deadlock.
    pub told: AtomicU32,
    /// Its `pthread_t`, for those who join it.
    pub pthread: AtomicU64,
    /// How far the clocks of those who woke it had ticked: it must not read an earlier time than they did.
    pub ticks: AtomicU64,
}

/// How long to wait for the lock before looking whether its holder is alive.
const LOCK_PATIENCE_NS: i64 = 20_000_000;
const SPINS: u32 = 100;
/// Set in the lock beside its holder when somebody waits for it.
const IS_AWAITED: u32 = 1 << 31;

impl Page {
    pub fn cell(&self, slot: usize) -> &Cell {
        &self.cells[slot]
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        let mask = block_signals();
        let me = task::known_id() as u32;
        if self.lock.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Some(Locked { page: self, mask: Some(mask), was_awaited: false, order: None });
        }
        restore_signals(&mask);
        None
    }

    /// Takes the lock; signals of this thread wait until it is given back.
    pub fn lock(&self) -> Locked<'_> {
        let mask = block_signals();
        let mut locked = self.lock_unmasked();
        locked.mask = Some(mask);
        locked
    }

    /// Takes the lock of a page that is not the one of the moment: signal handlers of this thread do not come to it.
    pub fn lock_unmasked(&self) -> Locked<'_> {
        let me = task::known_id() as u32;
        let mut spins = 0;
        let mut own = None;
        // Whoever has waited once takes the lock as one that others may wait for: it cannot know.
        let mut taken = me;
        while self.lock.compare_exchange_weak(0, taken, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spins += 1;
            if spins > SPINS {
                taken = me | IS_AWAITED;
                self.wait_for_lock(own.get_or_insert_with(|| self.cell_of(me)));
            } else {
                core::hint::spin_loop();
            }
        }
        if let Some(Some(cell)) = own {
            cell.is_locking.store(0, Ordering::SeqCst);
        }
        Locked { page: self, mask: None, was_awaited: own.is_some(), order: None }
    }

    /// The place of a thread, if it has one: whoever reads the table must not take its wait for the lock for sleep.
    #[cold]
    fn cell_of(&self, thread: u32) -> Option<&Cell> {
        let seats = self.seats.load(Ordering::Relaxed) as usize;
        self.cells[..seats.min(THREADS_MAX)].iter().find(|cell| cell.thread.load(Ordering::Relaxed) == thread as i32)
    }

    #[cold]
    fn wait_for_lock(&self, own: &Option<&Cell>) {
        if let Some(cell) = own {
            cell.is_locking.store(1, Ordering::SeqCst);
        }
        let holder = self.lock.load(Ordering::Relaxed);
        let awaited = holder | IS_AWAITED;
        let is_held = holder == awaited
            || holder != 0 && self.lock.compare_exchange(holder, awaited, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !is_held || futex::wait(&self.lock, awaited, LOCK_PATIENCE_NS) != futex::Woken::TimedOut {
            return;
        }
        // A zombie counts as dead: who would collect it may be the one that waits here.
        if !task::is_alive((awaited & !IS_AWAITED) as i32) {
            let _ = self.lock.compare_exchange(awaited, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// The page's table, for as long as the lock is held.
pub struct Locked<'a> {
    pub page: &'a Page,
    /// The signals that were blocked before.
    mask: Option<libc::sigset_t>,
    /// It was taken from somebody else, who cannot have seen the calling thread asleep.
    pub was_awaited: bool,
    /// What the journal says of the threads' order, while it is replayed and this is its page.
    order: Option<MutexGuard<'static, Order>>,
}

impl Locked<'_> {
    pub fn table(&mut self) -> &mut Table {
        // SAFETY: the lock is held, and `&mut self` makes the borrow exclusive in this thread.
        unsafe { &mut *self.page.table.get() }
    }

    pub fn scheduler(&mut self) -> Scheduler<'_> {
        self.fetch_order();
        // SAFETY: as in `table`; the order lies elsewhere.
        let table = unsafe { &mut *self.page.table.get() };
        let Table { entries, high, batons, choices, seed, .. } = table;
        let order = self.order.as_deref_mut();
        Scheduler { entries: &mut entries[..*high as usize], batons, choices, seed: *seed, order }
    }

    /// The recorded order, if one is followed here. Its lock is taken under the page's, with signals blocked, and nowhere else
    /// but where a sandbox is entered or left.
    pub fn fetch_order(&mut self) -> Option<&mut Order> {
        if self.order.is_none() {
            let is_own = |depth: usize| api::page_of(depth).is_some_and(|page| core::ptr::eq(page, self.page));
            let sandbox = guard::active().filter(|sandbox| sandbox.pace() == Pace::Recorded && is_own(sandbox.depth()));
            self.order = sandbox.map(|sandbox| sandbox.turns());
        }
        self.order.as_deref_mut()
    }

    /// Whether a signal has come for the calling thread that its handler will see when the lock is given back.
    pub fn has_signal(&self) -> bool {
        self.mask.as_ref().is_some_and(task::has_pending_signal)
    }

    /// An index for the calling process, or none.
    pub fn take_process(&mut self) -> Option<u32> {
        let table = self.table();
        let free = table.processes.iter().position(|&process| process == 0)?;
        // SAFETY: no preconditions.
        let own = unsafe { libc::getpid() };
        table.processes[free] = own;
        table.batons[free] = 0;
        table.log.forget_process(free as u32);
        // It was only late.
        table.externals.iter_mut().filter(|seen| seen.process == own).for_each(|seen| *seen = External::default());
        Some(free as u32)
    }

    /// The processes that have a thread in the table; 0 for the others. One that is just beginning has none yet, and may still do
    /// anything.
    pub fn seated_processes(&mut self) -> [i32; PROCESSES_MAX] {
        let mut seated = [0; PROCESSES_MAX];
        let table = self.table();
        for entry in &table.entries[..table.high as usize] {
            let index = entry.process as usize;
            if entry.state != hermetic_engine::scheduler::State::Free {
                seated[index] = table.processes[index];
            }
        }
        seated
    }

    /// A free place, or none.
    pub fn take_slot(&mut self) -> Option<usize> {
        let table = self.table();
        let high = table.high as usize;
        let is_free = |entry: &Entry| entry.state == hermetic_engine::scheduler::State::Free;
        if let Some(slot) = table.entries[..high].iter().position(is_free) {
            return Some(slot);
        }
        if high == THREADS_MAX {
            return None;
        }
        table.high += 1;
        self.page.seats.store(high as u32 + 1, Ordering::Relaxed);
        Some(high)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.order = None;
        if self.page.lock.swap(0, Ordering::Release) & IS_AWAITED != 0 {
            futex::wake(&self.page.lock, 1);
        }
        if let Some(mask) = &self.mask {
            restore_signals(mask);
        }
    }
}

fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut old = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: valid for writing.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: both sets are valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    // SAFETY: filled by the call, and zero is a set too.
    unsafe { old.assume_init() }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: a set that the kernel gave us.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
}

/// A page in memory files of its own: the page, the descriptor of its file, and that of its front. None where the machine
/// refuses.
pub fn create() -> Option<(&'static Page, i32, i32)> {
    // SAFETY: a C string and flags.
    let fd = unsafe { libc::memfd_create(c"hermetic-clock-page".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: our descriptor.
    if unsafe { libc::ftruncate(fd, size_of::<Page>() as i64) } != 0 {
        return None;
    }
    let fd = crate::pipes::move_up(fd);
    let page = open(fd)?;
    let front_fd = front::create()?;
    // SAFETY: the front is the first part of a map that `open` made.
    unsafe { front::lay(&page.front, front_fd) }?;
    page.front_fd.store(front_fd, Ordering::Relaxed);
    // Started programs come in through them.
    crate::descriptors::keep(fd);
    crate::descriptors::keep(front_fd);
    page.version.store(PAGE_VERSION, Ordering::Release);
    for cell in &page.cells {
        cell.pipe.store(-1, Ordering::Relaxed);
    }
    Some((page, fd, front_fd))
}

/// Maps the page that another process has open under that descriptor.
pub fn open_of(process: i32, fd: i32) -> Option<&'static Page> {
    let own = open_descriptor(process, fd, size_of::<Page>())?;
    let page = open(own)?;
    // SAFETY: our descriptor; the map keeps the memory.
    unsafe { libc::close(own) };
    if page.version.load(Ordering::Acquire) != PAGE_VERSION {
        return None;
    }
    let own = open_descriptor(process, page.front_fd.load(Ordering::Relaxed), size_of::<Front>())?;
    // SAFETY: the front is the first part of a map that `open` made.
    let laid = unsafe { front::lay(&page.front, own) };
    // SAFETY: our descriptor; the map keeps the memory.
    unsafe { libc::close(own) };
    laid.map(|()| page)
}

/// A descriptor of our own for what another process has open, if it is as long as it should be.
fn open_descriptor(process: i32, fd: i32, len: usize) -> Option<i32> {
    let path = std::ffi::CString::new(format!("/proc/{process}/fd/{fd}")).ok()?;
    // SAFETY: a C string and flags.
    let own = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if own < 0 {
        return None;
    }
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: our descriptor, valid for writing.
    let error = unsafe { libc::fstat(own, stat.as_mut_ptr()) };
    // SAFETY: zeroed or filled.
    let stat = unsafe { stat.assume_init() };
    if error == 0 && stat.st_size == len as i64 {
        return Some(own);
    }
    // SAFETY: our descriptor.
    unsafe { libc::close(own) };
    None
}

/// Maps the page behind a descriptor.
fn open(fd: i32) -> Option<&'static Page> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: maps a file at an address of the kernel's choice.
    let data = unsafe { libc::mmap(core::ptr::null_mut(), size_of::<Page>(), protection, libc::MAP_SHARED, fd, 0) };
    if data == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the map is long enough, page aligned, never unmapped, and every bit pattern that we write is a page.
    Some(unsafe { &*data.cast::<Page>() })
}
