//! What a waiting thread does now and then, because some things ring no bell: a thread that blocks outside of all hooks, a
//! process that is killed, real time that passes, a wait that nobody will end.

use crate::computing::Stillness;
use crate::page::Locked;
use crate::parking::{is_any_ready, is_stale, take_turn, unseat, Place, MOVED};
use crate::settle::{has_run_since_seen, is_asleep, real_ns, settle_waiting};
use crate::{children, foreign, guard, inside, jumps, parking};
use core::sync::atomic::Ordering;
use hermetic_engine::order::{Order, RecordedWait};
use hermetic_engine::scheduler::{Ended, State, NEVER};
use hermetic_sys::task;
use libc::pollfd;

/// A wait first looks again after this long, then after twice as long each time.
pub const FIRST_NS: i64 = 1_000_000;
const LAST_NS: i64 = 250_000_000;
/// Sleeps are not shorter, however close a deadline is.
const LEAST_NS: i64 = 20_000;
/// Looks that a thread gives up in a row because the table is with somebody else.
const MISSES_MAX: u32 = 4;
/// How long a ready thread lets the holder of the baton compute before it asks for the interpreter's lock all the same.
const ESCAPE_NS: i64 = 1_000_000_000;
/// How long a thread sleeps outside of all hooks before the others go on without it. On a busy machine short waits for the
/// kernel's own business (a thread that is just ending, a page that is just read) stay below this.
const SUSPICION_NS: i64 = 10_000_000;
/// The same while a journal says who goes on next: going on without the thread would leave the recorded order.
const SUSPICION_ORDERED_NS: i64 = 500_000_000;
/// How long nobody can run before it is called a deadlock.
const DEADLOCK_NS: i64 = 500_000_000;
/// The same where threads were seen that the table does not know, and that may yet do something.
const DEADLOCK_FOREIGN_NS: i64 = 5_000_000_000;

/// What a thread found when it looked around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// It goes on waiting.
    Waiting,
    /// Its wait has ended.
    Over(Ended),
    /// A signal came while it looked: its handler has run, as it would have in the kernel's wait.
    Signalled,
}

/// The watching of one wait.
pub struct Watch {
    period_ns: i64,
    /// Where time is real: when the wait is over.
    deadline_ns: i64,
    begin_ns: i64,
    /// How often in a row the table was with somebody else.
    misses: u32,
    /// Who holds time still.
    stillness: Stillness,
    /// Somebody outside can end the wait, whatever its descriptors look like.
    is_open: bool,
}

impl Watch {
    /// Begins to watch; `real_deadline_ns` is [`NEVER`] where virtual time ends the wait.
    pub fn begin(real_deadline_ns: i64) -> Watch {
        Watch {
            period_ns: FIRST_NS,
            deadline_ns: real_deadline_ns,
            begin_ns: 0,
            misses: 0,
            stillness: Stillness::default(),
            is_open: false,
        }
    }

    /// The same for a wait that may never be called a deadlock.
    pub fn open(self, is_open: bool) -> Watch {
        Watch { is_open, ..self }
    }

    /// How long to sleep before the next look.
    pub fn period(&self, place: &Place) -> i64 {
        match self.deadline_ns {
            NEVER => self.period_ns,
            deadline_ns => self.period_ns.min(deadline_ns.saturating_sub(place.now()).max(LEAST_NS)),
        }
    }

    /// Looks around. `fds` are the descriptors that the thread waits for, if it does: one may have become ready since.
    ///
    /// Where somebody else is at the table the thread goes back to sleep at once, because only a thread that is asleep lets
    /// others decide. Only if that happens again and again it waits: a holder that was killed must be found out.
    pub fn look(&mut self, place: &Place, fds: &mut [pollfd]) -> Looked {
        let mut locked = match place.page.try_lock() {
            Some(locked) => locked,
            None if self.misses < MISSES_MAX => {
                self.misses += 1;
                return Looked::Waiting;
            }
            None => place.page.lock(),
        };
        self.misses = 0;
        if is_stale(place) {
            return Looked::Over(MOVED);
        }
        if locked.has_signal() {
            return Looked::Signalled;
        }
        let missed = self.look_around(&mut locked, place, fds);
        let looked = take_turn(&mut locked, place).map_or(Looked::Waiting, Looked::Over);
        drop(locked);
        if let Some(missed) = missed {
            parking::tell_stuck(missed);
        }
        looked
    }

    /// Returns what the journal waits for in vain, if it has just been given up.
    fn look_around(&mut self, locked: &mut Locked<'_>, place: &Place, fds: &mut [pollfd]) -> Option<RecordedWait> {
        self.period_ns = (self.period_ns * 2).min(LAST_NS);
        let now_ns = real_ns();
        if self.begin_ns == 0 {
            self.begin_ns = now_ns;
        }
        forget_dead_processes(locked);
        observe_running(locked, place, now_ns);
        if self.deadline_ns <= place.now() {
            self.deadline_ns = NEVER;
            locked.scheduler().time_out(place.slot);
        }
        let is_ready = locked.table().entries[place.slot].state == State::Ready;
        if is_ready && now_ns - self.begin_ns > ESCAPE_NS {
            take_baton(locked, place);
            self.begin_ns = now_ns;
        }
        settle_waiting(locked, place.slot, || !is_any_ready(fds));
        if self.deadline_ns == NEVER {
            self.period_ns =
                self.stillness.outlast(locked, place).map_or(self.period_ns, |ns| self.period_ns.min(ns).max(FIRST_NS));
        }
        let is_following = locked.table().follow_real_ns != 0;
        if !is_following && locked.fetch_order().is_some_and(|order| order.next().is_some()) {
            return leave_order(locked, place, fds, now_ns);
        }
        self.follow(locked, place, fds, now_ns);
        break_deadlock(locked, place, fds, now_ns, self.is_open);
        None
    }

    /// Lets virtual time come to where real time is, while something outside is pending.
    fn follow(&mut self, locked: &mut Locked<'_>, place: &Place, fds: &mut [pollfd], now_ns: i64) {
        let table = locked.table();
        if table.follow_real_ns == 0 {
            return;
        }
        let target_ns = table.follow_elapsed_ns.saturating_add(now_ns - table.follow_real_ns);
        let earliest_ns = locked.scheduler().earliest();
        if target_ns < earliest_ns {
            // A child that is just starting may take part in a moment: time stands so long.
            if children::is_settled(locked) {
                jumps::note_following(locked, target_ns);
                place.page.front.clockwork.advance_to(target_ns);
            }
            self.period_ns = self.period_ns.min(earliest_ns - target_ns);
            return;
        }
        children::while_ignored(|| settle_waiting(locked, place.slot, || !is_any_ready(fds)));
    }
}

/// Takes the baton from a thread that computes for too long.
fn take_baton(locked: &mut Locked<'_>, place: &Place) {
    let Some(holder) = locked.scheduler().holder(place.process) else { return };
    locked.scheduler().take_baton(place.process);
    if place.process == 0 {
        let number = locked.page.cell(holder).number.load(Ordering::Relaxed);
        let _ = locked.page.lost_turn.compare_exchange(0, number + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A thread that runs as far as the table knows, and that the kernel has had asleep for a while without a slice, waits
/// for something outside of all hooks: the others need not wait for it.
fn observe_running(locked: &mut Locked<'_>, place: &Place, now_ns: i64) {
    let page = locked.page;
    let is_ordered = locked.fetch_order().is_some_and(|order| order.is_followed());
    let suspicion_ns = if is_ordered { SUSPICION_ORDERED_NS } else { SUSPICION_NS };
    for slot in 0..locked.table().high as usize {
        let entry = locked.table().entries[slot];
        let cell = page.cell(slot);
        let thread = cell.thread.load(Ordering::Relaxed);
        if slot == place.slot || thread == 0 {
            continue;
        }
        if entry.state == State::Asleep && has_run_since_seen(cell) {
            locked.scheduler().observe(slot, false);
        } else if entry.state != State::Running {
            continue;
        }
        let process = cell.process.load(Ordering::Relaxed);
        let slices = match is_asleep(cell) {
            true => task::slices(process, thread).map_or(0, |slices| slices + 1),
            false => 0,
        };
        if slices == 0 && !task::exists(process, thread) {
            // It ended while it was being seated; see `parking::seat_others`.
            unseat(locked, slot);
            continue;
        }
        if cell.suspect.swap(slices, Ordering::Relaxed) != slices {
            cell.suspect_ns.store(now_ns, Ordering::Relaxed);
        } else if slices != 0 && now_ns - cell.suspect_ns.load(Ordering::Relaxed) > suspicion_ns {
            cell.is_announced.store(0, Ordering::Relaxed);
            cell.is_back.store(0, Ordering::SeqCst);
            cell.is_parked.store(0, Ordering::Relaxed);
            locked.scheduler().observe(slot, true);
        }
    }
}

/// Removes the threads of processes that are gone: killed ones could not do it themselves.
fn forget_dead_processes(locked: &mut Locked<'_>) {
    let processes = locked.table().processes;
    for (index, &process) in processes.iter().enumerate().skip(1) {
        if process == 0 || task::is_alive(process) {
            continue;
        }
        locked.table().processes[index] = 0;
        for slot in 0..locked.table().high as usize {
            let entry = locked.table().entries[slot];
            if entry.state != State::Free && entry.process as usize == index {
                locked.scheduler().remove(slot);
            }
        }
    }
}

/// Gives the journal's order up when nobody has gone on for long. Where that is an error a thread is woken for it; otherwise
/// returns whom the journal has next, for the calling thread to tell.
fn leave_order(locked: &mut Locked<'_>, place: &Place, fds: &mut [pollfd], now_ns: i64) -> Option<RecordedWait> {
    let since_ns = locked.table().deadlock_real_ns;
    if since_ns == 0 {
        return None;
    }
    let least_ns = limit(locked);
    let order = locked.fetch_order()?;
    let next = *order.next()?;
    if now_ns - since_ns < patience(order, &next, least_ns) {
        return None;
    }
    let is_error = guard::active().is_some_and(|sandbox| sandbox.is_strict());
    if is_error {
        order.miss();
    } else {
        order.part();
    }
    locked.table().deadlock_real_ns = 0;
    if let Some(slot) = whom_to_tell(locked, place).filter(|_| is_error) {
        locked.scheduler().break_deadlock(slot);
    }
    settle_waiting(locked, place.slot, || !is_any_ready(fds));
    (!is_error).then_some(next)
}

/// How long the others wait for a thread that the journal has next. What comes from outside may take as long as it likes
/// where the thread sets no limit.
fn patience(order: &Order, next: &RecordedWait, least_ns: i64) -> i64 {
    match next.asked {
        Some(asked) if next.is_for_outside() && order.is_in_next(next.pedigree) => match asked.duration_ns {
            ..0 => i64::MAX,
            limit_ns => limit_ns.max(DEADLOCK_FOREIGN_NS),
        },
        _ => least_ns,
    }
}

fn break_deadlock(locked: &mut Locked<'_>, place: &Place, fds: &mut [pollfd], now_ns: i64, is_open: bool) {
    let since_ns = locked.table().deadlock_real_ns;
    if since_ns == 0 {
        return;
    }
    let page = locked.page;
    page.cell(place.slot).is_inside.store(u32::from(!is_open && inside::are_all(fds)), Ordering::Relaxed);
    if now_ns - since_ns < limit(locked) {
        return;
    }
    let table = locked.table();
    let entries = &table.entries[..table.high as usize];
    let is_open =
        |slot: usize| entries[slot].state == State::Asleep && page.cell(slot).is_inside.load(Ordering::Relaxed) == 0;
    if (0..entries.len()).any(is_open) {
        return;
    }
    let Some(slot) = whom_to_tell(locked, place) else { return };
    locked.table().deadlock_real_ns = 0;
    jumps::note_deadlock(locked);
    locked.scheduler().break_deadlock(slot);
    settle_waiting(locked, place.slot, || !is_any_ready(fds));
}

/// How long nobody can run before something is done about it.
fn limit(locked: &mut Locked<'_>) -> i64 {
    if !locked.table().may_others_act {
        locked.table().may_others_act = foreign::may_act(locked);
    }
    if locked.table().may_others_act {
        DEADLOCK_FOREIGN_NS
    } else {
        DEADLOCK_NS
    }
}

/// The thread of this process that an error is raised in. The main thread first: most errors are best raised there. One that
/// went on to wait all the same, as a thread inside a C function may, comes last the next time.
fn whom_to_tell(locked: &mut Locked<'_>, place: &Place) -> Option<usize> {
    let page = locked.page;
    let table = locked.table();
    let entries = &table.entries[..table.high as usize];
    let is_own = |slot: &usize| entries[*slot].process == place.process && entries[*slot].state != State::Free;
    let rank = |slot: &usize| {
        let cell = page.cell(*slot);
        let is_main = cell.thread.load(Ordering::Relaxed) == cell.process.load(Ordering::Relaxed);
        (cell.told.load(Ordering::Relaxed), !is_main, *slot)
    };
    let slot = (0..entries.len()).filter(is_own).min_by_key(rank)?;
    page.cell(slot).told.fetch_add(1, Ordering::Relaxed);
    Some(slot)
}
