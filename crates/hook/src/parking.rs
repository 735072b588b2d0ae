//! Waits that take no real time: threads are parked here, and woken by whoever ends their wait or by a jump of the clock.
//!
//! Every function that may wait follows one order: enter a [`Call`], take the page's lock, try the real thing once, register
//! in the table, let the scheduler decide, give the lock back, *drop the call* (H6), and only then wait. Whoever does
//! something that can end a wait does the real thing first and then rings here, so no wake-up is lost between the two.
//!
//! What cannot be parked (a read of a pipe, a child) is announced with [`asleep`]: the kernel knows when it ends, and is asked.

use crate::guard::{self, Call};
use crate::host::Registered;
use crate::page::{Cell, Locked, Page, PROCESSES_MAX, THREADS_MAX};
use crate::settle::{real_ns, ring, settle, settle_waiting};
use crate::watch::{Looked, Watch};
use crate::{children, fork, jumps, pipes, threads};
use core::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use hermetic_engine::host::Host;
use hermetic_engine::order::{Asked, Begun, Order, RecordedWait, NOBODY, OUTSIDE};
use hermetic_engine::scheduler::{Ended, Entry, Outcome, State, NEVER};
use hermetic_engine::thread::{Seat, LEVELS_MAX};
use hermetic_engine::waits::Pace;
use hermetic_engine::{Identity, Sandbox, Thread};
use hermetic_journal::{WaitKind, Wake};
use hermetic_model::stream::Pedigree;
use hermetic_sys::futex::{self, Woken};
use hermetic_sys::{clock as kernel, task};
use libc::pollfd;

/// The page of the active sandbox, or null; and this process's index in it.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(core::ptr::null_mut());
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Changes whenever the table is another one, or empty again. Seats of earlier epochs are void.
static EPOCH: AtomicU64 = AtomicU64::new(1);
/// Threads of this process that wait in the table: nobody needs to be rung while there are none.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// How a virtual wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// For its real reason, as far as is known: try again.
    Signalled,
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// The sandbox changed: this much of the time is left in whatever world there is now.
    Moved {
        left_ns: Option<i64>,
    },
    /// Nobody will ever end it; the thread has been told.
    Deadlock,
}

/// Where a wait is registered.
#[derive(Clone, Copy)]
pub struct Place {
    pub page: &'static Page,
    pub slot: usize,
    pub process: u32,
    epoch: u64,
    /// Time is real, and what happens is written down.
    is_real: bool,
}

impl Place {
    fn new(page: &'static Page, slot: u32, process: u32, epoch: u64) -> Place {
        let is_real = guard::active().is_some_and(|sandbox| sandbox.pace() == Pace::Real);
        Place { page, slot: slot as usize, process, epoch, is_real }
    }

    /// Where time is that deadlines are measured in.
    pub fn now(&self) -> i64 {
        let elapsed_ns = self.page.front.clockwork.elapsed();
        if self.is_real {
            elapsed_ns.saturating_add(real_ns())
        } else {
            elapsed_ns
        }
    }

    fn deadline(&self, ns: Option<i64>) -> i64 {
        ns.map_or(NEVER, |ns| self.now().saturating_add(ns))
    }

    /// The deadline again, where somebody has to watch the real clock for it.
    fn real_deadline(&self, deadline_ns: i64) -> i64 {
        if self.is_real {
            deadline_ns
        } else {
            NEVER
        }
    }
}

/// The generation of the page that this process takes part in.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// What [`GENERATION`] was at the levels below the one of the moment: a parent's sandbox may be over when this process comes
/// back to it.
static GENERATIONS: [AtomicU64; LEVELS_MAX] = [const { AtomicU64::new(0) }; LEVELS_MAX];

/// Leaves the page of a level for the one below, or for none. The calling thread goes on there with the baton, if it runs host
/// code.
pub fn go_back(below: Option<(usize, &'static Page)>, thread: Option<&mut Thread>) {
    let Some((depth, page)) = below else { return switch(None, 0, 0) };
    let mut locked = page.lock_unmasked();
    let generation = page.generation.load(Ordering::Acquire);
    let former = GENERATIONS[depth].load(Ordering::Relaxed);
    let own = fork::owner();
    // In a page of another process this one has a place of its own, or needs one if it was forked on a level above.
    let place = match locked.table().processes.iter().position(|&process| process == own) {
        Some(0) => Some((0, generation)),
        Some(index) => Some((index as u32, former)),
        None if former == generation => locked.take_process().map(|index| (index, former)),
        None => Some((0, former)),
    };
    let Some((process, generation)) = place else {
        drop(locked);
        return switch(None, 0, 0);
    };
    if let Some(thread) = thread {
        thread.seat.is_host = Registered.is_running();
        // Before those come who wait: time would jump if they were alone. The next epoch is this one's; see `begin`.
        let epoch = EPOCH.load(Ordering::Acquire) + 1;
        let _ = sit_down(&mut locked, thread, epoch, process, true);
    }
    children::note_left_behind(&mut locked);
    drop(locked);
    switch(Some(page), process, generation);
    seat_others();
}

/// Makes this page the one of the moment, or none. All waits of this process end and go on elsewhere.
fn switch(page: Option<&'static Page>, process: u32, generation: u64) {
    let (old, own) = (page_now(), PROCESS.load(Ordering::Relaxed));
    let new = page.map_or(core::ptr::null_mut(), |page| core::ptr::from_ref(page).cast_mut());
    PROCESS.store(process, Ordering::Relaxed);
    GENERATION.store(generation, Ordering::Relaxed);
    // In this order: who sees the new epoch sees the new page too, and waits of the old epoch register nowhere any more.
    PAGE.store(new, Ordering::Release);
    EPOCH.fetch_add(1, Ordering::AcqRel);
    let Some(old) = old else { return };
    let mut locked = old.lock_unmasked();
    locked.scheduler().move_all(own, |slot| ring(old, slot));
    locked.table().log.forget_process(own);
    if own == 0 {
        // Programs that were started inside find out that it is over.
        old.generation.store(0, Ordering::Release);
        let is_other = |slot: &usize| old.cell(*slot).process.load(Ordering::Relaxed) != fork::owner();
        (0..locked.table().high as usize).filter(is_other).for_each(|slot| ring(old, slot));
    }
}

/// Begins a new sandbox of this process on this page, which shows `wall_ns` on its wall clock, and makes it the page of the
/// moment. The thread that enters takes the first place, and the baton if it runs host code.
pub fn begin(page: &'static Page, depth: usize, generation: u64, wall_ns: i64, thread: &mut Thread) {
    if let Some(below) = depth.checked_sub(1) {
        GENERATIONS[below].store(GENERATION.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    thread.seat.is_host = Registered.is_running();
    let mut locked = page.lock_unmasked();
    reset(&mut locked, wall_ns);
    // Only those enter who hold the desk's lock, so the next epoch is this one's.
    let epoch = EPOCH.load(Ordering::Acquire) + 1;
    sit_first(&mut locked, thread, epoch);
    page.generation.store(generation, Ordering::Release);
    drop(locked);
    children::note_existing(page);
    switch(Some(page), 0, generation);
}

fn reset(locked: &mut Locked<'_>, wall_ns: i64) {
    let page = locked.page;
    let table = locked.table();
    for slot in 0..table.high as usize {
        page.cell(slot).pthread.store(0, Ordering::Relaxed);
    }
    table.high = 0;
    page.seats.store(0, Ordering::Relaxed);
    table.batons = [0; PROCESSES_MAX];
    table.processes = [0; PROCESSES_MAX];
    table.processes[0] = fork::owner();
    // The seed is asked for when there is somebody to choose from.
    (table.choices, table.seed) = (0, 0);
    table.externals = Default::default();
    page.has_externals.store(0, Ordering::Relaxed);
    page.lost_turn.store(0, Ordering::Relaxed);
    table.log.begin(wall_ns);
    (table.follow_real_ns, table.follow_elapsed_ns, table.deadlock_real_ns) = (0, 0, 0);
}

/// The page of the moment.
pub fn page_now() -> Option<&'static Page> {
    // SAFETY: null, or the address of a page that is never unmapped.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Whether waits go through the table.
fn takes_part(sandbox: &Sandbox) -> bool {
    sandbox.pace() != Pace::Off
}

/// The calling thread's place; it sits down if it has none in this epoch.
pub fn place_of(thread: &mut Thread) -> Option<Place> {
    let page = page_now()?;
    if is_over(page) {
        abandon();
        return None;
    }
    let epoch = EPOCH.load(Ordering::Acquire);
    let process = PROCESS.load(Ordering::Relaxed);
    if thread.seat.epoch != epoch {
        if !page_now().is_some_and(|now| core::ptr::eq(now, page)) {
            return place_of(thread);
        }
        let mut locked = page.lock();
        sit_down(&mut locked, thread, epoch, process, true)?;
    }
    Some(Place::new(page, thread.seat.slot, process, epoch))
}

/// The sandbox of a parent process is over: the world is real from here on.
#[cold]
fn abandon() {
    guard::activate(None);
    PAGE.store(core::ptr::null_mut(), Ordering::Release);
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

fn sit_down(locked: &mut Locked<'_>, thread: &mut Thread, epoch: u64, process: u32, runs: bool) -> Option<usize> {
    // A place may have been kept for it; see `seat_others`.
    if let Some(slot) = kept_slot(locked, runs) {
        thread.seat.epoch = epoch;
        thread.seat.slot = slot as u32;
        return Some(slot);
    }
    let slot = take_slot(locked)?;
    thread.seat.epoch = epoch;
    thread.seat.slot = slot as u32;
    locked.scheduler().add(slot, process, thread.seat.is_host, pedigree_of(&thread.identity).0, runs);
    let number = locked.table().log.number_thread(process);
    locked.page.cell(slot).number.store(number, Ordering::Relaxed);
    // Asked anew: the caller may be a child of vfork.
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: no preconditions.
    fill_cell(locked.page.cell(slot), process, task::own_id(), unsafe { libc::pthread_self() });
    Some(slot)
}

/// The thread that enters sits down in the first place of an empty table.
fn sit_first(locked: &mut Locked<'_>, thread: &mut Thread, epoch: u64) {
    let Some(slot) = locked.take_slot() else { return };
    (thread.seat.epoch, thread.seat.slot) = (epoch, slot as u32);
    // Whoever it is in the sandbox below, here it is the first.
    locked.scheduler().add(slot, 0, thread.seat.is_host, Pedigree::ROOT.0, true);
    let cell = locked.page.cell(slot);
    cell.number.store(locked.table().log.number_thread(0), Ordering::Relaxed);
    // SAFETY: no preconditions.
    fill_cell(cell, fork::owner(), task::known_id(), unsafe { libc::pthread_self() });
}

/// A free place. One beside others needs the seed, by which the next to run is chosen.
fn take_slot(locked: &mut Locked<'_>) -> Option<usize> {
    let slot = locked.take_slot()?;
    if slot > 0 && locked.table().seed == 0 {
        locked.table().seed = guard::active().map_or(0, Sandbox::schedule_seed);
    }
    Some(slot)
}

/// Who a thread is in the sandbox of the moment, if it did not enter that itself.
fn pedigree_of(identity: &Identity) -> Pedigree {
    identity.pedigree_in(guard::active().map_or(0, Sandbox::generation))
}

fn kept_slot(locked: &mut Locked<'_>, runs: bool) -> Option<usize> {
    if !runs || locked.table().high == 0 {
        return None;
    }
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() };
    let slot = slot_of(locked, process, task::own_id())?;
    locked.scheduler().observe(slot, false);
    Some(slot)
}

/// The place of a thread that has one.
fn slot_of(locked: &mut Locked<'_>, process: i32, thread: i32) -> Option<usize> {
    let page = locked.page;
    let table = locked.table();
    (0..table.high as usize).find(|&slot| {
        let cell = page.cell(slot);
        table.entries[slot].state != State::Free
            && cell.thread.load(Ordering::Relaxed) == thread
            && cell.process.load(Ordering::Relaxed) == process
    })
}

/// Threads that earlier sandboxes left behind (the server of a session's fixture) take part in this one. They are somewhere in
/// a real wait, or on their way; the kernel knows.
pub fn seat_others() {
    if !threads::has_live() {
        return;
    }
    let Some(page) = page_now() else { return };
    let (own, process) = (task::own_id(), PROCESS.load(Ordering::Relaxed));
    threads::for_each_live(|thread, pthread, identity, is_host| {
        if thread == own {
            return;
        }
        let mut locked = page.lock();
        if slot_of(&mut locked, fork::owner(), thread).is_some() {
            // It was quicker.
            return;
        }
        let Some(slot) = take_slot(&mut locked) else { return };
        locked.scheduler().add(slot, process, is_host, pedigree_of(&identity).0, true);
        locked.scheduler().observe(slot, true);
        let number = locked.table().log.number_thread(process);
        let cell = page.cell(slot);
        cell.number.store(number, Ordering::Relaxed);
        fill_cell(cell, fork::owner(), thread, pthread);
        // One that runs just now shows by its next slice that it was not asleep.
        let slices = task::slices(cell.process.load(Ordering::Relaxed), thread);
        cell.suspect.store(slices.map_or(0, |slices| slices + 1), Ordering::Relaxed);
    });
}

fn fill_cell(cell: &Cell, process: i32, thread: i32, pthread: u64) {
    cell.process.store(process, Ordering::Relaxed);
    cell.thread.store(thread, Ordering::Relaxed);
    cell.suspect.store(0, Ordering::Relaxed);
    cell.is_announced.store(0, Ordering::Relaxed);
    cell.is_parked.store(0, Ordering::Relaxed);
    cell.is_back.store(0, Ordering::Relaxed);
    cell.is_signalled.store(0, Ordering::Relaxed);
    cell.is_locking.store(0, Ordering::Relaxed);
    cell.told.store(0, Ordering::Relaxed);
    cell.ticks.store(0, Ordering::Relaxed);
    cell.pipe.store(-1, Ordering::Relaxed);
    cell.pthread.store(pthread, Ordering::Relaxed);
}

/// In a forked child, whose only thread this is: a process of its own in the table, a place of its own.
pub fn enter_child(thread: &mut Thread) {
    let Some(page) = page_now() else { return };
    WAITING.store(0, Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::AcqRel);
    // Children of a recorded or replayed test take no part.
    let takes_part = guard::active().is_none_or(takes_part);
    let process = if takes_part { page.lock().take_process() } else { None };
    if let Some(process) = process {
        PROCESS.store(process, Ordering::Relaxed);
        let _ = place_of(thread);
    } else {
        PAGE.store(core::ptr::null_mut(), Ordering::Release);
    }
}

/// A place for a thread that is about to start, taken by its maker so that time does not jump before it has begun. False: the
/// journal that is replayed has no such thread.
pub fn expect_thread(child: &mut Thread, is_host: bool, is_guest: bool) -> bool {
    let Some(page) = page_now() else { return true };
    let epoch = EPOCH.load(Ordering::Acquire);
    (child.seat.is_host, child.seat.is_made_by_host) = (is_host, is_host);
    let mut locked = page.lock();
    if let Some(slot) = sit_down(&mut locked, child, epoch, PROCESS.load(Ordering::Relaxed), false) {
        // Whose number it will be is not known yet; until then it counts as awake.
        page.cell(slot).thread.store(0, Ordering::Relaxed);
        page.cell(slot).pthread.store(0, Ordering::Relaxed);
    }
    is_guest || locked.scheduler().expect(child.identity.pedigree.0, is_host)
}

/// The maker of a thread tells its `pthread_t`, so that a join finds the place of one that has not begun. Seat and identity are
/// what the record held when it was made: it may be somebody else's by now.
pub fn name_thread(seat: Seat, identity: Identity, pthread: u64) {
    let Some(page) = page_now() else { return };
    let mut locked = page.lock();
    if seat.epoch != EPOCH.load(Ordering::Acquire) {
        return;
    }
    let slot = seat.slot as usize;
    let cell = page.cell(slot);
    let entry = &locked.table().entries[slot];
    let is_same = entry.state != State::Free && entry.pedigree == identity.pedigree.0;
    if is_same && cell.thread.load(Ordering::Acquire) == 0 {
        threads::forget_ending(pthread);
        cell.pthread.store(pthread, Ordering::Release);
    }
}

/// A started thread begins: host threads wait for their turn.
pub fn begin_thread(thread: &mut Thread) {
    let Some(page) = page_now() else { return };
    if thread.seat.epoch != EPOCH.load(Ordering::Acquire) {
        return;
    }
    let place = Place::new(page, thread.seat.slot, PROCESS.load(Ordering::Relaxed), thread.seat.epoch);
    let cell = page.cell(place.slot);
    cell.thread.store(task::own_id(), Ordering::Relaxed);
    // SAFETY: no preconditions.
    cell.pthread.store(unsafe { libc::pthread_self() }, Ordering::Relaxed);
    if thread.seat.is_host {
        await_turn(place, false);
        note_turn(&place, Wake::Turn, NOBODY);
    }
}

/// A thread for which a place was taken never started.
pub fn forget_thread(thread: &mut Thread) {
    let Some(page) = page_now() else { return };
    let mut locked = page.lock();
    if thread.seat.epoch == EPOCH.load(Ordering::Acquire) {
        locked.scheduler().remove(thread.seat.slot as usize);
        settle(&mut locked);
    }
}

/// The calling thread ends: its place is free, and the others go on.
pub fn end_thread(thread: &mut Thread) {
    let Some(page) = page_now().filter(|_| thread.is_controlled()) else { return };
    let epoch = EPOCH.load(Ordering::Acquire);
    let mut locked = page.lock();
    if epoch != EPOCH.load(Ordering::Acquire) {
        return;
    }
    let slot = match thread.seat.epoch == epoch {
        true => Some(thread.seat.slot as usize),
        false => kept_slot(&mut locked, true),
    };
    let Some(slot) = slot else { return };
    let ticks = guard::active().map_or(0, |sandbox| sandbox.ticks(thread));
    unseat_at(&mut locked, slot, ticks);
    settle(&mut locked);
    thread.seat.epoch = 0;
}

/// Frees a thread's place, and lets those go on who join it.
pub fn unseat(locked: &mut Locked<'_>, slot: usize) {
    unseat_at(locked, slot, 0);
}

/// As [`unseat`], for a thread whose clock has ticked that far.
fn unseat_at(locked: &mut Locked<'_>, slot: usize, ticks: u64) {
    let page = locked.page;
    let Entry { process, pedigree, .. } = locked.table().entries[slot];
    let pthread = page.cell(slot).pthread.swap(0, Ordering::SeqCst);
    locked.scheduler().remove(slot);
    if pthread != 0 {
        let ring = |woken| ring_at(page, woken, ticks);
        locked.scheduler().signal(process, join_channel(pthread), usize::MAX, pedigree, ring);
    }
}

/// What those wait for who join a thread. Odd, unlike every address of a semaphore or condition.
pub fn join_channel(pthread: u64) -> u64 {
    pthread | 1
}

/// Whether a thread of this process with that `pthread_t` still has a place. Takes no lock.
pub fn is_seated(pthread: u64) -> bool {
    let Some(page) = page_now() else { return false };
    // SAFETY: no preconditions.
    let own = unsafe { libc::getpid() };
    (0..THREADS_MAX)
        .map(|slot| page.cell(slot))
        .any(|cell| cell.pthread.load(Ordering::Acquire) == pthread && cell.process.load(Ordering::Relaxed) == own)
}

/// A wait that is about to be registered.
struct Beginning {
    call: Call,
    place: Place,
    holds_host: bool,
    asked: Option<Asked>,
    deadline_ns: i64,
}

impl Beginning {
    /// None: the wait is not ours to make.
    fn of(kind: WaitKind, ns: Option<i64>) -> Option<Beginning> {
        let mut call = Call::enter()?;
        if !takes_part(call.sandbox) {
            return None;
        }
        let holds_host = call.thread().seat.is_host && Registered.is_running();
        let place = place_of(call.thread())?;
        let asked = ask(&mut call, kind, ns);
        Some(Beginning { call, place, holds_host, asked, deadline_ns: place.deadline(ns) })
    }
}

/// Parks the calling thread until the channel is rung or `ns` nanoseconds have passed; `attempt` tries the real thing once,
/// when nobody can ring any more without being heard. None: the wait is not ours to make.
pub fn park(kind: WaitKind, channel: usize, ns: Option<i64>, attempt: impl FnOnce() -> bool) -> Option<Waited> {
    let errno = kernel::errno();
    let mut beginning = Beginning::of(kind, ns)?;
    let Beginning { place, holds_host, asked, deadline_ns, .. } = beginning;
    let begun;
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return Some(Waited::Moved { left_ns: ns });
        }
        // Before the attempt: whoever does the real thing after it must know that there is somebody to ring.
        WAITING.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if attempt() {
            WAITING.fetch_sub(1, Ordering::AcqRel);
            return Some(Waited::Signalled);
        }
        begun = locked.scheduler().begin_recorded(place.slot, asked.as_ref(), false);
        if matches!(begun, Begun::Parted(_)) && beginning.call.sandbox.is_strict() {
            drop(locked);
            WAITING.fetch_sub(1, Ordering::AcqRel);
            // The thread has an error to raise, and does not wait before it does.
            tell_journal(&mut beginning.call, asked, begun);
            return Some(Waited::Deadlock);
        }
        let cell = place.page.cell(place.slot);
        cell.is_signalled.store(0, Ordering::Relaxed);
        cell.is_parked.store(1, Ordering::Relaxed);
        locked.scheduler().wait(place.slot, channel as u64, deadline_ns, false, holds_host);
        settle_waiting(&mut locked, place.slot, || true);
        let ended = if asked.is_none() { take_turn(&mut locked, &place) } else { None };
        if let Some(ended) = ended {
            drop(locked);
            drop(beginning);
            WAITING.fetch_sub(1, Ordering::AcqRel);
            return Some(conclude(place, deadline_ns, ended, false, errno));
        }
    }
    tell_journal(&mut beginning.call, asked, begun);
    drop(beginning);
    let (ended, is_interrupted) = await_turn_until(place, true, place.real_deadline(deadline_ns));
    WAITING.fetch_sub(1, Ordering::AcqRel);
    Some(conclude(place, deadline_ns, ended, is_interrupted, errno))
}

/// What a journal knows the wait by.
pub fn ask(call: &mut Call, kind: WaitKind, ns: Option<i64>) -> Option<Asked> {
    let (sandbox, thread) = call.parts();
    sandbox.ask(thread, &Registered, kind, ns)
}

/// A wait has begun: it is written down, or the journal does not have it.
fn tell_journal(call: &mut Call, asked: Option<Asked>, begun: Begun) {
    let Some(asked) = asked else { return };
    let (sandbox, thread) = call.parts();
    if let Begun::Parted(expected) = begun {
        sandbox.report_parting(thread, &Registered, Some(&asked), expected);
    } else if sandbox.pace() == Pace::Real {
        sandbox.record_wait(thread, &asked);
    }
}

/// Nobody goes on, although the journal that is replayed has somebody: the calling thread tells.
pub fn tell_stuck(expected: RecordedWait) {
    let Some(mut call) = Call::enter() else { return };
    let (sandbox, thread) = call.parts();
    sandbox.report_stuck(thread, &Registered, &expected);
}

/// The calling thread goes on: for the journal that is being written.
fn note_turn(place: &Place, how: Wake, by: u64) {
    let Some(mut call) = Call::enter().filter(|call| place.is_real && call.sandbox.pace() == Pace::Real) else {
        return;
    };
    let (sandbox, thread) = call.parts();
    sandbox.record_wake(thread, how, by);
}

/// Whether the table is another one by now.
pub fn is_stale(place: &Place) -> bool {
    place.epoch != EPOCH.load(Ordering::Acquire) || is_over(place.page)
}

/// Whether the sandbox that this process takes part in was left by the process that had entered it.
fn is_over(page: &Page) -> bool {
    page.generation.load(Ordering::Acquire) != GENERATION.load(Ordering::Relaxed)
}

/// A started program takes part.
pub fn enter_inherited(page: &'static Page, process: u32, thread: &mut Thread) {
    switch(Some(page), process, page.generation.load(Ordering::Acquire));
    thread.seat.is_host = crate::host::image() != 0;
    let _ = place_of(thread);
}

/// This process ends, and its threads with it.
pub fn leave_process() {
    let Some(page) = page_now() else { return };
    let process = PROCESS.load(Ordering::Relaxed);
    // SAFETY: no preconditions.
    if process != 0 && !crate::fork::is_borrowed() {
        forget_process(page, process);
    }
}

/// A process was seen to have ended.
pub fn process_ended(number: i32) {
    let Some(page) = page_now() else { return };
    if page.seats.load(Ordering::Relaxed) < 2 {
        return;
    }
    let index = page.lock().table().processes.iter().position(|&process| process == number);
    if let Some(process) = index.filter(|&process| process != 0) {
        forget_process(page, process as u32);
    }
}

/// Removes what the calling process was before it became another program.
pub fn forget_former(page: &'static Page) {
    // SAFETY: no preconditions.
    let own = unsafe { libc::getpid() };
    let processes = page.lock().table().processes;
    for (index, _) in processes.iter().enumerate().filter(|(_, &process)| process == own) {
        forget_process(page, index as u32);
    }
}

fn forget_process(page: &'static Page, process: u32) {
    let mut locked = page.lock();
    for slot in 0..locked.table().high as usize {
        let entry = locked.table().entries[slot];
        if entry.state != State::Free && entry.process == process {
            locked.scheduler().remove(slot);
        }
    }
    locked.table().processes[process as usize] = 0;
    settle(&mut locked);
}

/// What the program is told. Its `errno` is what it was before the wait: the hook decides whether it changes.
fn conclude(place: Place, deadline_ns: i64, ended: Ended, is_interrupted: bool, errno: i32) -> Waited {
    if ended.outcome == Outcome::Signalled {
        catch_up(place);
    }
    let waited = match ended.outcome {
        Outcome::TimedOut => {
            note_move(place.page);
            Waited::TimedOut
        }
        Outcome::Moved => {
            let left = deadline_ns.saturating_sub(place.now()).max(0);
            Waited::Moved { left_ns: (deadline_ns != NEVER).then_some(left) }
        }
        Outcome::Deadlock => {
            tell_deadlock(&place);
            Waited::Deadlock
        }
        _ if is_interrupted => Waited::Interrupted,
        _ => Waited::Signalled,
    };
    match waited {
        Waited::TimedOut => note_turn(&place, Wake::TimedOut, NOBODY),
        Waited::Interrupted => note_turn(&place, Wake::Interrupted, NOBODY),
        Waited::Deadlock => note_turn(&place, Wake::Deadlock, NOBODY),
        Waited::Signalled if ended.by == NOBODY => note_turn(&place, Wake::Kernel, NOBODY),
        Waited::Signalled => note_turn(&place, Wake::Woken, ended.by),
        Waited::Moved { .. } => {}
    }
    kernel::set_errno(errno);
    waited
}

/// Waits until the table says that the thread runs. Returns how its wait ended, and whether a signal handler ran meanwhile.
fn await_turn(place: Place, may_interrupt: bool) -> (Ended, bool) {
    await_turn_until(place, may_interrupt, NEVER)
}

/// As [`await_turn`], and watches the real clock for a deadline.
fn await_turn_until(place: Place, may_interrupt: bool, real_deadline_ns: i64) -> (Ended, bool) {
    let cell = place.page.cell(place.slot);
    let mut is_interrupted = false;
    let mut watch = Watch::begin(real_deadline_ns);
    loop {
        let bell = cell.bell.load(Ordering::Acquire);
        if let Some(ended) = turn(&place, &mut []) {
            return (ended, is_interrupted);
        }
        // Until the bell rings there is no news but what the thread finds when it looks around.
        let woken = loop {
            if may_interrupt && !is_interrupted && was_signalled(cell) {
                break Woken::Interrupted;
            }
            match futex::wait(&cell.bell, bell, watch.period(&place)) {
                Woken::TimedOut => match watch.look(&place, &mut []) {
                    Looked::Waiting => {}
                    Looked::Over(ended) => return (ended, is_interrupted),
                    Looked::Signalled => break Woken::Interrupted,
                },
                woken => break woken,
            }
        };
        if woken == Woken::Interrupted && may_interrupt && !is_interrupted {
            let mut locked = place.page.lock();
            if !is_stale(&place) && locked.table().entries[place.slot].state == State::Parked {
                is_interrupted = true;
                locked.scheduler().come_back(place.slot, Outcome::Signalled);
                settle(&mut locked);
            }
        }
    }
}

/// Whether a signal that was meant for this thread has come since its wait was registered: its handler may have run before
/// the kernel's wait began, and interrupts it all the same, as the wait began long ago in virtual time.
fn was_signalled(cell: &Cell) -> bool {
    let was = cell.is_signalled.load(Ordering::SeqCst) == IS_MEANT && !task::has_pending_signals();
    if was {
        cell.is_signalled.store(1, Ordering::SeqCst);
    }
    was
}

/// The outcome, once the thread may run.
fn turn(place: &Place, fds: &mut [pollfd]) -> Option<Ended> {
    let mut locked = place.page.lock();
    if is_stale(place) {
        return Some(MOVED);
    }
    if locked.was_awaited && locked.table().entries[place.slot].state == State::Asleep {
        // Whoever decided meanwhile had to count this thread as awake.
        settle_waiting(&mut locked, place.slot, || !is_any_ready(fds));
    }
    take_turn(&mut locked, place)
}

/// The sandbox changed under a wait.
pub const MOVED: Ended = Ended { outcome: Outcome::Moved, by: NOBODY };

/// The same for who holds the lock already.
pub fn take_turn(locked: &mut Locked<'_>, place: &Place) -> Option<Ended> {
    let entry = &mut locked.table().entries[place.slot];
    (entry.state == State::Running).then(|| Ended { outcome: core::mem::take(&mut entry.outcome), by: entry.by })
}

/// Waits for descriptors with `ppoll`, or for `ns` to pass. The caller has found none of them ready. `fds` has one more place
/// at its end than the program's list. None: the wait is not ours to make.
pub fn poll(kind: WaitKind, fds: &mut [pollfd], ns: Option<i64>, mask: *const libc::sigset_t) -> Option<Waited> {
    let errno = kernel::errno();
    let mut beginning = Beginning::of(kind, ns)?;
    let Beginning { place, holds_host, asked, deadline_ns, .. } = beginning;
    let begun;
    let pipe = pipes::of(place.slot);
    let own = fds.len() - 1;
    fds[own] = pollfd { fd: pipe.map_or(-1, |pipe| pipe.read), events: libc::POLLIN, revents: 0 };
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return Some(Waited::Moved { left_ns: ns });
        }
        begun = locked.scheduler().begin_recorded(place.slot, asked.as_ref(), true);
        if begun == Begun::Unrecorded {
            return None;
        }
        WAITING.fetch_add(1, Ordering::AcqRel);
        place.page.cell(place.slot).pipe.store(pipe.map_or(-1, |pipe| pipe.write), Ordering::Release);
        announce(&place);
        locked.scheduler().wait(place.slot, 0, deadline_ns, true, holds_host);
        settle_waiting(&mut locked, place.slot, || !is_any_ready(&mut fds[..own]));
    }
    tell_journal(&mut beginning.call, asked, begun);
    drop(beginning);
    // A read may be answered by whoever holds the other end; nothing tells who that is.
    let watch = Watch::begin(place.real_deadline(deadline_ns)).open(kind == WaitKind::Socket);
    let (ended, is_interrupted) = await_descriptors(place, watch, fds, mask, deadline_ns);
    place.page.cell(place.slot).pipe.store(-1, Ordering::Release);
    WAITING.fetch_sub(1, Ordering::AcqRel);
    Some(conclude(place, deadline_ns, ended, is_interrupted, errno))
}

/// Makes the threads of this process that wait for descriptors look again: they may have to wait for less.
pub fn nudge() {
    let Some(page) = page_now().filter(|_| has_company()) else { return };
    let process = PROCESS.load(Ordering::Relaxed);
    let mut locked = page.lock();
    for slot in 0..locked.table().high as usize {
        let entry = &locked.table().entries[slot];
        let is_asleep = entry.state == State::Asleep && entry.process == process;
        if is_asleep && page.cell(slot).pipe.load(Ordering::Acquire) >= 0 {
            locked.scheduler().come_back(slot, Outcome::Signalled);
            ring(page, slot);
        }
    }
    settle(&mut locked);
}

fn announce(place: &Place) {
    let cell = place.page.cell(place.slot);
    cell.is_announced.store(1, Ordering::Relaxed);
    cell.is_parked.store(0, Ordering::Relaxed);
    cell.is_signalled.store(0, Ordering::Relaxed);
    cell.is_back.store(0, Ordering::SeqCst);
}

fn await_descriptors(
    place: Place,
    mut watch: Watch,
    fds: &mut [pollfd],
    mask: *const libc::sigset_t,
    deadline_ns: i64,
) -> (Ended, bool) {
    let own = fds.len() - 1;
    let is_back = &place.page.cell(place.slot).is_back;
    let mut has_news = true;
    loop {
        if has_news {
            if let Some(ended) = turn(&place, &mut fds[..own]) {
                return (ended, false);
            }
        }
        if was_signalled(place.page.cell(place.slot)) {
            return (end_announced(place), true);
        }
        // Without a pipe nobody can ring, so look often.
        let period_ns = watch.period(&place);
        let period_ns = if fds[own].fd < 0 { period_ns.min(crate::watch::FIRST_NS) } else { period_ns };
        let period = libc::timespec { tv_sec: 0, tv_nsec: period_ns };
        is_back.store(0, Ordering::SeqCst);
        // SAFETY: the slice is as long as it says; the mask is the program's.
        let count = unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &period, mask) };
        let is_interrupted = count < 0 && kernel::errno() == libc::EINTR;
        // From here to the next round it may sleep for the page's lock, which is no wait for what may come.
        is_back.store(1, Ordering::SeqCst);
        if count < 0 {
            return (end_announced(place), is_interrupted);
        }
        if fds[..own].iter().any(|fd| fd.revents != 0) {
            let ended = end_announced(place);
            // Whoever had its turn before may have taken what was there. A journal tells of no wait that ended for nothing.
            if !place.is_real || !is_from_kernel(ended) || is_any_ready(&mut fds[..own]) {
                return (ended, false);
            }
            wait_on(place, deadline_ns);
            continue;
        }
        has_news = count > 0;
        if has_news {
            pipes::drain(&mut fds[own], &place);
            continue;
        }
        match watch.look(&place, &mut fds[..own]) {
            Looked::Waiting => {}
            Looked::Over(ended) => return (ended, false),
            Looked::Signalled => return (end_announced(place), true),
        }
    }
}

fn is_from_kernel(ended: Ended) -> bool {
    ended == Ended { outcome: Outcome::Signalled, by: NOBODY }
}

/// A thread that had come back from the kernel waits on.
fn wait_on(place: Place, deadline_ns: i64) {
    let mut locked = place.page.lock();
    if !is_stale(&place) {
        announce(&place);
        locked.scheduler().wait(place.slot, 0, deadline_ns, true, false);
        settle_waiting(&mut locked, place.slot, || true);
    }
}

/// The wait of a thread that had announced it has ended in the kernel; it goes on when it is its turn.
fn end_announced(place: Place) -> Ended {
    let may_run = {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return MOVED;
        }
        let may_run = locked.scheduler().come_back(place.slot, Outcome::Signalled);
        if locked.scheduler().is_timed_out(place.slot) {
            // What it waits for has come early: it sleeps on until its time is up, as it was when recorded.
            let cell = place.page.cell(place.slot);
            cell.is_parked.store(1, Ordering::Relaxed);
            cell.pipe.store(-1, Ordering::Release);
            cell.is_back.store(0, Ordering::SeqCst);
        }
        settle(&mut locked);
        may_run
    };
    if may_run {
        Ended { outcome: Outcome::Signalled, by: NOBODY }
    } else {
        await_turn(place, false).0
    }
}

/// Announces that the calling thread is about to wait in the kernel for something that only the kernel sees, as long as it
/// `still_waits` for it. None where announcing makes no difference: the thread is alone, or no part of a sandbox with a virtual
/// clock.
fn asleep(kind: WaitKind, still_waits: impl FnMut() -> bool) -> Option<Asleep> {
    if !has_company() {
        return None;
    }
    let mut beginning = Beginning::of(kind, None)?;
    let Beginning { place, holds_host, asked, .. } = beginning;
    let begun;
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return None;
        }
        begun = locked.scheduler().begin_recorded(place.slot, asked.as_ref(), true);
        if begun == Begun::Unrecorded {
            return None;
        }
        WAITING.fetch_add(1, Ordering::AcqRel);
        announce(&place);
        locked.scheduler().wait(place.slot, 0, NEVER, true, holds_host);
        settle_waiting(&mut locked, place.slot, still_waits);
    }
    tell_journal(&mut beginning.call, asked, begun);
    Some(Asleep(place))
}

/// A wait in the kernel that was announced. It is ended by hand, not by a destructor: the thread may be cancelled in it (H6).
#[derive(Clone, Copy)]
struct Asleep(Place);

impl Asleep {
    /// The wait is over; the thread goes on when it is its turn. Keeps `errno`.
    fn end(self) {
        let errno = kernel::errno();
        let place = self.0;
        place.page.cell(place.slot).is_back.store(1, Ordering::SeqCst);
        let ended = end_announced(place);
        WAITING.fetch_sub(1, Ordering::AcqRel);
        if ended != MOVED {
            note_turn(&place, Wake::Kernel, NOBODY);
        }
        kernel::set_errno(errno);
    }
}

/// Runs a call that may wait in the kernel: `attempt` makes it without waiting and says whether that was enough.
#[inline]
pub fn in_kernel<R>(kind: WaitKind, mut attempt: impl FnMut() -> Option<R>, wait: impl FnOnce() -> R) -> R {
    if let Some(done) = attempt() {
        return done;
    }
    // What can be had without waiting meanwhile is kept: asking may have taken it.
    let mut done = None;
    let asleep = asleep(kind, || {
        done = attempt();
        done.is_none()
    });
    let result = match done {
        Some(done) => done,
        None => wait(),
    };
    if let Some(asleep) = asleep {
        asleep.end();
    }
    result
}

/// Waits for something that other processes may end as well as this one, so that only the kernel knows: `attempt` makes the
/// wait really, for at most the nanoseconds it is told, and says whether that was enough. None: the wait is not ours to make.
pub fn wait_in_kernel(kind: WaitKind, ns: Option<i64>, mut attempt: impl FnMut(i64) -> Attempt) -> Option<Waited> {
    let errno = kernel::errno();
    let mut beginning = Beginning::of(kind, ns)?;
    let Beginning { place, holds_host, asked, deadline_ns, .. } = beginning;
    let begun;
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return Some(Waited::Moved { left_ns: ns });
        }
        begun = locked.scheduler().begin_recorded(place.slot, asked.as_ref(), true);
        if begun == Begun::Unrecorded {
            return None;
        }
        WAITING.fetch_add(1, Ordering::AcqRel);
        announce(&place);
        locked.scheduler().wait(place.slot, 0, deadline_ns, true, holds_host);
        settle_waiting(&mut locked, place.slot, || true);
    }
    tell_journal(&mut beginning.call, asked, begun);
    drop(beginning);
    let (ended, is_interrupted) = attempt_until_turn(place, &mut attempt, place.real_deadline(deadline_ns));
    WAITING.fetch_sub(1, Ordering::AcqRel);
    Some(conclude(place, deadline_ns, ended, is_interrupted, errno))
}

/// How a part of a real wait went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Done,
    TimedOut,
    Interrupted,
}

fn attempt_until_turn(place: Place, attempt: &mut impl FnMut(i64) -> Attempt, real_deadline_ns: i64) -> (Ended, bool) {
    let mut watch = Watch::begin(real_deadline_ns);
    let is_back = &place.page.cell(place.slot).is_back;
    if let Some(ended) = turn(&place, &mut []) {
        return (ended, false);
    }
    loop {
        is_back.store(0, Ordering::SeqCst);
        let got = attempt(watch.period(&place));
        is_back.store(1, Ordering::SeqCst);
        if got != Attempt::TimedOut {
            return (end_announced(place), got == Attempt::Interrupted);
        }
        match watch.look(&place, &mut []) {
            Looked::Waiting => {}
            Looked::Over(ended) => return (ended, false),
            Looked::Signalled => return (end_announced(place), true),
        }
    }
}

/// Runs a call on a descriptor that waits, unless the descriptor is ready: most are, and cost one look.
#[inline]
pub fn when_ready<R>(fd: i32, events: i16, act: impl FnOnce() -> R) -> R {
    let still_waits = || !is_any_ready(&mut [pollfd { fd, events, revents: 0 }]);
    if !has_company() || !still_waits() || never_waits(fd) {
        return act();
    }
    let asleep = asleep(WaitKind::Socket, still_waits);
    let result = act();
    if let Some(asleep) = asleep {
        asleep.end();
    }
    result
}

/// Whether the calling thread waits for its turn where it waits for the descriptor: it runs interpreted code, has given the
/// interpreter's lock away, and is not alone.
#[inline]
pub fn takes_turns(fd: i32) -> bool {
    has_company()
        && threads::seat().is_some_and(|seat| seat.is_host)
        && is_host_lock_given_away()
        && is_stream(fd)
        && !never_waits(fd)
}

fn is_host_lock_given_away() -> bool {
    // The host is asked without our hooks in between (H5).
    Call::enter().is_some_and(|call| takes_part(call.sandbox) && !Registered.is_running())
}

/// Whether what the descriptor gives comes from somebody, when he likes: it is no file.
pub fn is_stream(fd: i32) -> bool {
    let mut stat = core::mem::MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: valid for writing.
    let error = unsafe { libc::fstat64(fd, stat.as_mut_ptr()) };
    // SAFETY: zeroed, or filled by the call.
    let kind = unsafe { stat.assume_init() }.st_mode & libc::S_IFMT;
    error == 0 && !matches!(kind, libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK)
}

/// Whether calls on the descriptor return at once when it is not ready.
fn never_waits(fd: i32) -> bool {
    // SAFETY: only asks.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

/// Whether anybody else has a place in the table of the moment: alone, a thread may wait as it likes.
#[inline]
fn has_company() -> bool {
    page_now().is_some_and(|page| page.seats.load(Ordering::Relaxed) > 1)
}

/// Whether one of the descriptors is ready now (or is none). Keeps `errno`.
pub fn is_any_ready(fds: &mut [pollfd]) -> bool {
    if fds.is_empty() {
        return false;
    }
    let errno = kernel::errno();
    // SAFETY: the slice is as long as it says, and nobody waits.
    let count = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 0) };
    kernel::set_errno(errno);
    count != 0
}

/// A thread of the interpreter finds its lock taken. True: it gave the lock's mutex up with `unlock` and was parked until its
/// turn. False: the lock is with somebody whom the table does not know; wait for it really.
pub fn await_host_lock(condition: usize, unlock: impl FnOnce()) -> bool {
    let Some(mut call) = Call::enter() else { return false };
    if !takes_part(call.sandbox) {
        return false;
    }
    call.thread().seat.is_host = true;
    let Some(place) = place_of(call.thread()) else { return false };
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return false;
        }
        locked.table().entries[place.slot].is_host = true;
        let keeps = |entry: &Entry| entry.process == place.process && entry.holds_host;
        let is_kept = locked.scheduler().entries.iter().any(keeps);
        if locked.scheduler().has_baton(place.slot) && !is_kept {
            return false;
        }
        if !locked.scheduler().begin_turn(place.slot) {
            return false;
        }
        WAITING.fetch_add(1, Ordering::AcqRel);
        unlock();
        if is_kept {
            place.page.cell(place.slot).is_parked.store(1, Ordering::Relaxed);
            locked.scheduler().wait(place.slot, condition as u64, NEVER, false, false);
        } else {
            locked.scheduler().come_back(place.slot, Outcome::Signalled);
        }
        settle(&mut locked);
    }
    drop(call);
    await_turn(place, false);
    WAITING.fetch_sub(1, Ordering::AcqRel);
    note_turn(&place, Wake::Turn, NOBODY);
    true
}

/// A thread of the interpreter has given its lock away without waiting: for a computation that needs no lock, or for a call
/// that may take a while. Whoever is ready may be next; the seed decides. Not while something is imported or
/// collected: whether an import reads files or finds all done depends on what the process did before.
pub fn offer_turn() {
    if WAITING.load(Ordering::Acquire) != 0 && !is_by_chance() {
        offer_turn_now();
    }
}

fn is_by_chance() -> bool {
    // The host is asked without our hooks in between (H5).
    let Some(mut call) = Call::enter() else { return false };
    let (sandbox, thread) = call.parts();
    sandbox.is_by_chance(thread) || Registered.is_importing()
}

/// The same where even threads that have not begun yet may be next.
pub fn offer_turn_now() {
    if !has_company() {
        return;
    }
    let Some(mut call) = Call::enter() else { return };
    // A thread that has run its last code ends before anybody goes on: what others find of it shall not be chance.
    let is_ending = call.thread().seat.is_made_by_host && !Registered.is_known();
    // How often the interpreter gives its lock away is not the same when replayed, so no journal tells of it.
    if call.sandbox.pace() != Pace::Virtual || is_ending {
        return;
    }
    let Some(place) = place_of(call.thread()) else { return };
    {
        let mut locked = place.page.lock();
        if is_stale(&place) || locked.scheduler().offer_baton(place.slot) {
            return;
        }
        WAITING.fetch_add(1, Ordering::AcqRel);
        settle(&mut locked);
    }
    drop(call);
    await_turn(place, false);
    WAITING.fetch_sub(1, Ordering::AcqRel);
}

/// Asks or tells the journal that is replayed about the thread in that place, if there is one.
pub fn with_order<R>(place: &Place, act: impl FnOnce(&mut Order, u64) -> R) -> Option<R> {
    let mut locked = place.page.lock();
    let pedigree = locked.table().entries[place.slot].pedigree;
    locked.fetch_order().map(|order| act(order, pedigree))
}

/// Waits really until one of the descriptors is ready, and keeps the turn. False: none is.
pub fn wait_for_ready(fds: &mut [pollfd], ns: i64) -> bool {
    let period = libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    // SAFETY: the slice is as long as it says.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &period, core::ptr::null()) > 0 }
}

/// How many bytes can be taken from the descriptor now.
pub fn bytes_there(fd: i32) -> usize {
    let mut count: core::ffi::c_int = 0;
    // SAFETY: the number is valid for writing.
    let error = unsafe { libc::ioctl(fd, libc::FIONREAD, &mut count) };
    usize::try_from(count).ok().filter(|_| error == 0).unwrap_or(0)
}

/// The calling thread, which need not wait, lets others run until it is its turn again.
pub fn step_aside(mut call: Call, place: Place, asked: Option<Asked>) {
    let begun;
    {
        let mut locked = place.page.lock();
        if is_stale(&place) {
            return;
        }
        begun = locked.scheduler().begin_recorded(place.slot, asked.as_ref(), false);
        WAITING.fetch_add(1, Ordering::SeqCst);
        locked.scheduler().step_aside(place.slot);
        settle(&mut locked);
    }
    tell_journal(&mut call, asked, begun);
    drop(call);
    await_turn(place, false);
    WAITING.fetch_sub(1, Ordering::AcqRel);
    note_turn(&place, Wake::Turn, NOBODY);
}

/// In a cell: the signal has a handler, and is meant for this thread.
const IS_MEANT: u32 = 2;

/// A signal is about to be sent to a thread of this process.
pub fn expect_signal_for(pthread: u64, signal: i32) {
    let own = crate::fork::owner();
    let mark = if has_handler(signal) { IS_MEANT } else { 1 };
    mark_signalled(|cell| {
        let is_it = cell.process.load(Ordering::Relaxed) == own && cell.pthread.load(Ordering::Relaxed) == pthread;
        is_it.then_some(mark)
    });
}

/// A signal is about to be sent to a process, or to several (numbers below 1). The kernel prefers the main thread.
pub fn expect_signal_in(process: i32, signal: i32) {
    let own = crate::fork::owner();
    let mark = if has_handler(signal) { IS_MEANT } else { 1 };
    mark_signalled(|cell| {
        let target = cell.process.load(Ordering::Relaxed);
        let is_main = process == own && cell.thread.load(Ordering::Relaxed) == own;
        (process < 1 || target == process).then_some(if is_main { mark } else { 1 })
    });
}

/// Whether this process handles the signal by code of its own.
fn has_handler(signal: i32) -> bool {
    let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: valid for writing; nothing is changed.
    let error = unsafe { libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed, or filled by the call.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    error == 0 && handler != libc::SIG_DFL && handler != libc::SIG_IGN
}

/// Marks threads for which time must not jump over the handlers of signals.
fn mark_signalled(mark: impl Fn(&Cell) -> Option<u32>) {
    let Some(page) = page_now() else { return };
    let seats = page.seats.load(Ordering::Relaxed) as usize;
    for cell in (0..seats.min(THREADS_MAX)).map(|slot| page.cell(slot)) {
        if let Some(mark) = mark(cell) {
            cell.is_signalled.store(mark, Ordering::SeqCst);
        }
    }
}

/// Something was done to what lies at that address: up to `count` waiters may go on. Returns how many there were.
#[inline]
pub fn signal(channel: usize, count: usize) -> usize {
    if PAGE.load(Ordering::Relaxed).is_null() {
        return 0;
    }
    // What was just done must be seen before it is asked who waits; the counterpart is in `park`.
    fence(Ordering::SeqCst);
    if WAITING.load(Ordering::Acquire) == 0 {
        return 0;
    }
    signal_waiters(channel, count)
}

#[cold]
fn signal_waiters(channel: usize, count: usize) -> usize {
    let Some(page) = page_now() else { return 0 };
    let errno = kernel::errno();
    let ticks = own_ticks();
    guard::real_begin();
    let process = PROCESS.load(Ordering::Relaxed);
    let mut locked = page.lock();
    let by = waker(&mut locked);
    let done = locked.scheduler().signal(process, channel as u64, count, by, |slot| ring_at(page, slot, ticks));
    if done > 0 {
        settle(&mut locked);
    }
    drop(locked);
    guard::real_end();
    kernel::set_errno(errno);
    done
}

/// How far the calling thread's clock has ticked; 0 for a thread that is no part of the sandbox.
fn own_ticks() -> u64 {
    Call::enter().map_or(0, |mut call| {
        let (sandbox, thread) = call.parts();
        sandbox.ticks(thread)
    })
}

/// Rings for a thread that is woken by one whose clock has ticked that far.
fn ring_at(page: &Page, slot: usize, ticks: u64) {
    page.cell(slot).ticks.fetch_max(ticks, Ordering::AcqRel);
    ring(page, slot);
}

/// The calling thread was woken: its clock is no earlier than that of whoever did it.
fn catch_up(place: Place) {
    let ticks = place.page.cell(place.slot).ticks.swap(0, Ordering::AcqRel);
    if let Some(mut call) = Call::enter().filter(|_| ticks > 0) {
        let (sandbox, thread) = call.parts();
        sandbox.catch_up(thread, ticks);
    }
}

/// The calling thread's name in the table, for the journal: who ends the waits of others.
fn waker(locked: &mut Locked<'_>) -> u64 {
    let seat = threads::seat().filter(|seat| seat.epoch == EPOCH.load(Ordering::Acquire));
    seat.map_or(OUTSIDE, |seat| locked.table().entries[seat.slot as usize].pedigree)
}

/// Time has ended the calling thread's wait: for the times of files, and the journal if there is one.
fn note_move(page: &Page) {
    let Some(mut call) = Call::enter() else { return };
    let (sandbox, thread) = call.parts();
    sandbox.note_move(kernel::read(libc::CLOCK_REALTIME_COARSE));
    if sandbox.is_recording() && sandbox.pace() == Pace::Virtual {
        let reason = jumps::last_reason(&mut page.lock());
        sandbox.record_jump(thread, &Registered, reason);
    }
}

/// The thread that a deadlock was broken for learns of it: its wait ends, and the error comes at its next opportunity.
fn tell_deadlock(place: &Place) {
    let Some(mut call) = Call::enter() else { return };
    let missed = place.page.lock().fetch_order().and_then(Order::take_missed);
    let (sandbox, thread) = call.parts();
    match missed {
        Some(missed) => sandbox.report_stuck(thread, &Registered, &missed),
        None => sandbox.report_deadlock(thread, &Registered),
    }
}
