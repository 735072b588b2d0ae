//! Carrying out what the scheduler decides.

use crate::page::{Cell, Locked, Page};
use crate::{children, fork, guard, jumps, outside, pipes};
use core::sync::atomic::Ordering;
use hermetic_engine::scheduler::Step;
use hermetic_engine::waits::Pace;
use hermetic_sys::{clock as kernel, futex, task};

/// How often the decision is repeated for a thread that the kernel is just waking, before it is left to those who watch.
const TURNS_MAX: u32 = 40;

/// Decides until there is nothing to decide, and carries the decisions out.
pub fn settle(locked: &mut Locked<'_>) {
    settle_waiting(locked, NOBODY, || true);
}

/// No place of the table.
const NOBODY: usize = usize::MAX;

/// As [`settle`], for a thread that is about to wait in the kernel: it counts as asleep although it runs, as long as it
/// `still_waits` for what it will wait for.
pub fn settle_waiting(locked: &mut Locked<'_>, me: usize, mut still_waits: impl FnMut() -> bool) {
    let page = locked.page;
    let own = fork::owner();
    let is_real = guard::active().is_some_and(|sandbox| sandbox.pace() == Pace::Real);
    let mut turns = 0;
    loop {
        let mut is_waking = false;
        let processes = locked.seated_processes();
        let mut external = None;
        let step = locked.scheduler().next(
            || {
                if is_real {
                    // Each thread sees by itself that its time has come.
                    return true;
                }
                external = children::find_external(page, &processes, outside::is_owed);
                external.is_some()
            },
            |slot, is_final| {
                let cell = page.cell(slot);
                if slot == me {
                    return !is_final || still_waits();
                }
                let is_parked = cell.pipe.load(Ordering::Relaxed) < 0 && cell.is_parked.load(Ordering::Relaxed) != 0;
                let (process, thread) = (cell.process.load(Ordering::Relaxed), cell.thread.load(Ordering::Relaxed));
                let is_asleep = if is_parked {
                    // It waits for nothing but its bell, also while it looks around. In another process it may be dying.
                    match cell.is_signalled.load(Ordering::SeqCst) {
                        0 => process == own || task::is_asleep(process, thread),
                        _ => is_asleep(cell),
                    }
                } else {
                    // The kernel first: a thread that comes back after that is still asleep for all that matters here.
                    is_asleep(cell) && cell.is_back.load(Ordering::SeqCst) == 0 && !has_run_since_seen(cell)
                };
                // One that waits for the lock cannot come further before it is given back.
                is_waking |= !is_asleep && cell.is_locking.load(Ordering::SeqCst) == 0;
                is_asleep
            },
        );
        match step {
            Step::Busy if is_waking && turns < TURNS_MAX => {
                turns += 1;
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
            Step::Busy | Step::Empty => break,
            Step::Run { slot } => {
                note_loose(locked);
                tell(page, slot, me);
            }
            Step::Jump { slot, to_ns } => {
                note_loose(locked);
                jumps::note_deadline(locked, slot, to_ns);
                page.front.clockwork.advance_to(to_ns);
                tell(page, slot, me);
            }
            Step::Follow { .. } if is_real => break,
            Step::Follow { .. } => return follow(locked, external.unwrap_or(children::ANSWER)),
            Step::Deadlock => return begin_deadlock(locked),
        }
    }
    let table = locked.table();
    (table.follow_real_ns, table.deadlock_real_ns) = (0, 0);
    table.log.end_following();
}

/// Tells the sandbox when its replay could not follow the recorded order to the letter.
fn note_loose(locked: &mut Locked<'_>) {
    if let (true, Some(sandbox)) = (locked.fetch_order().is_some_and(|order| order.is_loose()), guard::active()) {
        sandbox.loosen();
    }
}

/// Whether the kernel has the thread asleep for something else than the page's lock, which whoever asks holds.
pub fn is_asleep(cell: &Cell) -> bool {
    task::is_asleep(cell.process.load(Ordering::Relaxed), cell.thread.load(Ordering::Relaxed))
        && cell.is_locking.load(Ordering::SeqCst) == 0
}

/// Whether a thread that did not announce its wait has run since it was seen asleep.
pub fn has_run_since_seen(cell: &Cell) -> bool {
    if cell.is_announced.load(Ordering::Relaxed) != 0 || cell.is_parked.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let slices = task::slices(cell.process.load(Ordering::Relaxed), cell.thread.load(Ordering::Relaxed));
    slices.is_none_or(|slices| slices + 1 != cell.suspect.load(Ordering::Relaxed))
}

/// Rings for a thread, unless it is the one that decides: it looks at its entry anyway.
fn tell(page: &Page, slot: usize, me: usize) {
    if slot != me {
        ring(page, slot);
    }
}

/// Makes a thread look at its entry again.
pub fn ring(page: &Page, slot: usize) {
    let cell = page.cell(slot);
    cell.bell.fetch_add(1, Ordering::AcqRel);
    futex::wake(&cell.bell, i32::MAX);
    pipes::ring(cell.process.load(Ordering::Relaxed), cell.pipe.load(Ordering::Acquire));
}

/// The kernel's monotonic clock.
pub fn real_ns() -> i64 {
    kernel::read(libc::CLOCK_MONOTONIC)
}

/// Time follows the real one for the sake of a child, or of [`children::ANSWER`].
fn follow(locked: &mut Locked<'_>, child: i32) {
    let elapsed_ns = locked.page.front.clockwork.elapsed();
    if child != children::ANSWER {
        children::note_external(locked, child, real_ns());
    }
    let table = locked.table();
    (table.deadlock_real_ns, table.follow_child) = (0, child);
    if table.follow_real_ns == 0 {
        (table.follow_real_ns, table.follow_elapsed_ns) = (real_ns(), elapsed_ns);
    }
}

fn begin_deadlock(locked: &mut Locked<'_>) {
    let table = locked.table();
    table.follow_real_ns = 0;
    table.log.end_following();
    if table.deadlock_real_ns == 0 {
        (table.deadlock_real_ns, table.may_others_act) = (real_ns(), false);
    }
}
