//! A thread that computes while all others wait, and so holds time still.
//!
//! A job that computes takes no virtual time. But a loop that only looks whether a flag is set would hold time still for ever,
//! so there is an end to it, counted in processor time: a busy machine makes no deadline come early.

use crate::jumps;
use crate::page::Locked;
use crate::parking::Place;
use core::sync::atomic::Ordering;
use hermetic_engine::scheduler::{Entry, State, NEVER};
use hermetic_sys::task;

/// How much longer than the next deadline is away a thread may compute before that deadline comes.
const PATIENCE_NS: i64 = 5_000_000_000;

/// For how long time has stood, as one that waits for a deadline sees it.
#[derive(Default)]
pub struct Stillness {
    first: Option<Computing>,
}

/// A thread that computes, as it was when it was looked at.
#[derive(Clone, Copy)]
struct Computing {
    thread: i32,
    /// How far time was. If it moves, the count begins anew.
    elapsed_ns: i64,
    /// Processor time that the thread had had.
    had_ns: u64,
}

impl Stillness {
    /// Lets the deadline of the thread in that place come, if it is the next and somebody has computed for long enough. Else
    /// returns the processor time after which it would, if anybody computes.
    pub fn outlast(&mut self, locked: &mut Locked<'_>, place: &Place) -> Option<i64> {
        let now = if is_next(locked, place.slot) { computing(locked, place) } else { None };
        let Some(now) = now else {
            self.first = None;
            return None;
        };
        let is_same = |first: &Computing| (first.thread, first.elapsed_ns) == (now.thread, now.elapsed_ns);
        let first = *self.first.insert(self.first.filter(is_same).unwrap_or(now));
        let deadline_ns = locked.table().entries[place.slot].deadline_ns;
        let needed_ns = deadline_ns.saturating_sub(now.elapsed_ns).saturating_add(PATIENCE_NS);
        let left_ns = needed_ns.saturating_sub_unsigned(now.had_ns.saturating_sub(first.had_ns));
        if left_ns > 0 {
            return Some(left_ns);
        }
        self.first = None;
        jumps::note_computed(locked, place.slot, deadline_ns);
        place.page.front.clockwork.advance_to(deadline_ns);
        locked.scheduler().time_out(place.slot);
        None
    }
}

/// Whether the thread in that place waits for the next moment that anybody waits for, and no journal has another one next.
fn is_next(locked: &mut Locked<'_>, slot: usize) -> bool {
    let pedigree = locked.table().entries[slot].pedigree;
    if locked.fetch_order().is_some_and(|order| order.next().is_some() && !order.is_in_next(pedigree)) {
        return false;
    }
    let table = locked.table();
    let waits = |entry: &&Entry| matches!(entry.state, State::Parked | State::Asleep) && entry.deadline_ns != NEVER;
    let next = table.entries[..table.high as usize].iter().filter(waits).map(|entry| entry.deadline_ns).min();
    next == Some(table.entries[slot].deadline_ns) && waits(&&table.entries[slot])
}

/// The thread that runs while all others wait: the one with the baton, or else the first.
fn computing(locked: &mut Locked<'_>, place: &Place) -> Option<Computing> {
    let elapsed_ns = place.page.front.clockwork.elapsed();
    let holder = locked.scheduler().holder(place.process);
    let table = locked.table();
    let runs = |slot: &usize| table.entries[*slot].state == State::Running && *slot != place.slot;
    let slot = holder.filter(runs).or_else(|| (0..table.high as usize).find(runs))?;
    let cell = place.page.cell(slot);
    let thread = cell.thread.load(Ordering::Relaxed);
    let had_ns = task::computed_ns(cell.process.load(Ordering::Relaxed), thread)?;
    Some(Computing { thread, elapsed_ns, had_ns })
}
