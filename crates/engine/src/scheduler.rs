//! Who runs, who waits, and when time may jump: a table of threads, and the decision over it.
//!
//! Plain values in, a [`Step`] out. The hook library keeps the table in memory that all processes of a sandbox share, holds
//! a lock around every call, and carries the steps out: it parks threads and wakes them.
//!
//! A thread of the *host* (one that runs interpreted code) runs only while it holds its process's *baton*: it gets it when
//! chosen, and gives it up when it waits. So host threads run one at a time until they block, and the order in which ready
//! ones are chosen comes from the seed. *Native* threads need no baton; they only count as busy.
//!
//! Time jumps to the earliest deadline when nobody can run: no thread is running or ready, and every thread that waits for
//! something which the table cannot see (a descriptor, a child) is asleep in the kernel.
//!
//! While a test is replayed the [`Order`] of its journal decides instead: who goes on next, and whose time is up.

use crate::order::{Asked, Begun, Order, NOBODY};
use hermetic_journal::Wake;

/// No deadline.
pub const NEVER: i64 = i64::MAX;

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The place is free.
    #[default]
    Free = 0,
    /// It runs, as far as is known.
    Running = 1,
    /// It could run, and is parked until it gets the baton.
    Ready = 2,
    /// It is parked, until it is signalled or its deadline comes.
    Parked = 3,
    /// It waits in the kernel for something that only the kernel sees; it may have a deadline as well.
    Asleep = 4,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// It has not ended.
    #[default]
    None = 0,
    /// For its real reason.
    Signalled = 1,
    /// Its deadline has come.
    TimedOut = 2,
    /// The sandbox changed under it: it goes on in whatever world there is now.
    Moved = 3,
    /// Nobody will ever end it.
    Deadlock = 4,
}

/// How a wait ended, and who ended it; see [`crate::order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    pub by: u64,
}

/// A thread in the table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Entry {
    pub state: State,
    pub outcome: Outcome,
    /// Which process it belongs to: an index into the batons.
    pub process: u32,
    pub is_host: bool,
    /// It waits while it holds its interpreter's lock, so that threads which want the lock cannot run either.
    pub holds_host: bool,
    /// On the sandbox's elapsed time; [`NEVER`] for none.
    pub deadline_ns: i64,
    /// What it waits for, as an address; 0 for time alone.
    pub channel: u64,
    /// Who it is across runs.
    pub pedigree: u64,
    /// Who ended its last wait; see [`crate::order`].
    pub by: u64,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Somebody runs: nothing to decide.
    Busy,
    /// Wake this thread: it was ready, and has the baton now.
    Run { slot: usize },
    /// Set the clock to this elapsed time, then wake this thread: its wait has timed out.
    Jump { slot: usize, to_ns: i64 },
    /// Something outside is pending: the clock reaches this deadline when real time does.
    Follow { slot: usize, deadline_ns: i64 },
    /// Nobody is timed and nothing outside is pending.
    Deadlock,
    /// There are no threads.
    Empty,
}

/// The decision over a table.
pub struct Scheduler<'a> {
    pub entries: &'a mut [Entry],
    /// For each process: slot plus one of the thread that holds its baton, or zero.
    pub batons: &'a mut [u32],
    /// Choices made so far: together with the seed it decides the next.
    pub choices: &'a mut u64,
    pub seed: u64,
    /// Of the journal that is replayed.
    pub order: Option<&'a mut Order>,
}

impl Scheduler<'_> {
    /// A thread takes part. A native thread runs; a host thread is ready, unless it `runs` already: the one that enters, or
    /// one from an earlier sandbox that is met on its way.
    pub fn add(&mut self, slot: usize, process: u32, is_host: bool, pedigree: u64, runs: bool) {
        let state = if runs || !is_host { State::Running } else { State::Ready };
        self.entries[slot] = Entry { state, process, is_host, pedigree, deadline_ns: NEVER, ..Entry::default() };
        if is_host && runs {
            self.try_give_baton(slot);
        }
    }

    /// A thread ends.
    pub fn remove(&mut self, slot: usize) {
        self.give_up_baton(slot);
        let former = core::mem::take(&mut self.entries[slot]);
        let is_it = |entry: &Entry| entry.state != State::Free && entry.pedigree == former.pedigree;
        if former.state != State::Free && !self.entries.iter().any(is_it) {
            if let Some(order) = &mut self.order {
                order.end(former.pedigree);
            }
        }
    }

    /// What the journal says to a wait that is about to begin; `asked` is none where no journal cares. See [`Order::begin`].
    pub fn begin_recorded(&mut self, slot: usize, asked: Option<&Asked>, in_kernel: bool) -> Begun {
        match (&mut self.order, asked) {
            (Some(order), Some(asked)) => order.begin(self.entries[slot].pedigree, asked, in_kernel),
            _ => Begun::Free,
        }
    }

    /// A thread is about to start; one of the host waits for its turn. False: the journal has no such thread, and decides
    /// nothing any more.
    pub fn expect(&mut self, pedigree: u64, is_host: bool) -> bool {
        let Some(order) = &mut self.order else { return true };
        let is_known = !order.is_followed() || order.knows(pedigree);
        if !is_known {
            order.part();
        } else if is_host {
            order.begin_turn(pedigree);
        }
        is_known
    }

    /// Whether a thread may wait for its turn alone. False: it took none when recorded.
    pub fn begin_turn(&mut self, slot: usize) -> bool {
        let pedigree = self.entries[slot].pedigree;
        self.order.as_deref_mut().is_none_or(|order| order.begin_turn(pedigree))
    }

    /// A thread begins to wait: parked for a channel or a deadline, or (`in_kernel`) for what only the kernel sees.
    pub fn wait(&mut self, slot: usize, channel: u64, deadline_ns: i64, in_kernel: bool, holds_host: bool) {
        self.give_up_baton(slot);
        let entry = &mut self.entries[slot];
        entry.state = if in_kernel { State::Asleep } else { State::Parked };
        entry.outcome = Outcome::None;
        entry.channel = channel;
        entry.deadline_ns = deadline_ns;
        entry.holds_host = holds_host;
        entry.by = NOBODY;
    }

    /// The deadline of a waiting thread has come in real time.
    pub fn time_out(&mut self, slot: usize) {
        self.end_wait(slot, Outcome::TimedOut);
    }

    /// A thread that came back from the kernel, or runs without the baton, wants to go on. True: it may at once; false: it
    /// is ready, and parks until it is chosen.
    pub fn come_back(&mut self, slot: usize, outcome: Outcome) -> bool {
        if self.has_baton(slot) {
            return true;
        }
        if self.is_timed_out(slot) {
            return false;
        }
        self.end_wait(slot, outcome);
        if self.entries[slot].state == State::Running && self.entries[slot].is_host {
            self.entries[slot].state = State::Ready;
        }
        self.entries[slot].state != State::Ready
    }

    /// The holder of the baton lets the seed decide between itself and the threads that are ready. True: it goes on; false: it
    /// is ready itself now.
    pub fn offer_baton(&mut self, slot: usize) -> bool {
        if !self.has_baton(slot) || !self.is_awaited(slot) {
            return true;
        }
        self.step_aside(slot);
        false
    }

    /// The holder of the baton gives it up and waits for its turn.
    pub fn step_aside(&mut self, slot: usize) {
        self.give_up_baton(slot);
        self.entries[slot].state = State::Ready;
    }

    /// Whether another thread of the process could run if this one gave the baton up.
    pub fn is_awaited(&self, slot: usize) -> bool {
        let process = self.entries[slot].process;
        self.entries.iter().any(|entry| entry.state == State::Ready && entry.process == process)
    }

    /// Whether the thread holds its process's baton.
    pub fn has_baton(&self, slot: usize) -> bool {
        self.batons[self.entries[slot].process as usize] == slot as u32 + 1
    }

    /// The thread that holds a process's baton.
    pub fn holder(&self, process: u32) -> Option<usize> {
        (self.batons[process as usize] as usize).checked_sub(1)
    }

    /// Takes the baton from a thread that neither waits nor ends; it goes on without.
    pub fn take_baton(&mut self, process: u32) {
        self.batons[process as usize] = 0;
    }

    /// A thread without the baton was found to be asleep, or awake again, outside of all hooks.
    pub fn observe(&mut self, slot: usize, is_asleep: bool) {
        let entry = &mut self.entries[slot];
        match (entry.state, is_asleep) {
            (State::Running, true) => {
                entry.state = State::Asleep;
                entry.outcome = Outcome::None;
                entry.deadline_ns = NEVER;
                entry.channel = 0;
                self.give_up_baton(slot);
            }
            (State::Asleep, false) => entry.state = State::Running,
            _ => {}
        }
    }

    /// Something was done to a channel `by` a thread: up to `count` of its waiters may go on. Calls `woken` for those that may
    /// at once (native threads); the others are ready and wait for the baton. Returns how many waiters there were.
    pub fn signal(&mut self, process: u32, channel: u64, count: usize, by: u64, mut woken: impl FnMut(usize)) -> usize {
        let mut done = 0;
        while done < count && channel != 0 {
            let waits = |_: &Self, entry: &Entry| {
                entry.state == State::Parked && entry.channel == channel && entry.process == process
            };
            let chosen = if self.is_ordered() { self.choose_recorded(by, waits) } else { self.choose(waits) };
            let Some(slot) = chosen else { break };
            self.entries[slot].by = by;
            self.end_wait(slot, Outcome::Signalled);
            if self.entries[slot].state == State::Running {
                woken(slot);
            }
            done += 1;
        }
        done
    }

    /// Ends the wait of a thread by telling it that nobody else will.
    pub fn break_deadlock(&mut self, slot: usize) {
        self.end_wait(slot, Outcome::Deadlock);
    }

    /// Ends every wait of a process, because the sandbox changed under it, and forgets its threads.
    pub fn move_all(&mut self, process: u32, mut woken: impl FnMut(usize)) {
        for slot in 0..self.entries.len() {
            let entry = &mut self.entries[slot];
            if entry.process != process || entry.state == State::Free {
                continue;
            }
            let was_waiting = entry.state != State::Running;
            *entry = Entry { outcome: Outcome::Moved, ..Entry::default() };
            if was_waiting {
                woken(slot);
            }
        }
        self.batons[process as usize] = 0;
    }

    /// What to do now. `is_external`, asked before time jumps, tells whether something that is no part of the table may still
    /// answer. `is_asleep` tells whether the kernel has a waiting thread asleep, and nothing that it waits for has come; it is
    /// asked before one of several is chosen, and (`true`) after `is_external` said no: what a child left behind when it ended
    /// is there by then.
    pub fn next(&mut self, is_external: impl FnOnce() -> bool, mut is_asleep: impl FnMut(usize, bool) -> bool) -> Step {
        match self.next_recorded(&mut is_asleep) {
            // Before that is said, time comes for those of whom the journal tells no order.
            Some(Step::Deadlock) if self.earliest() != NEVER => {
                return self.jump(is_external, |slot| is_asleep(slot, true))
            }
            Some(step) => return step,
            None => {}
        }
        let may_run =
            |table: &Self, entry: &Entry| entry.state == State::Ready && table.batons[entry.process as usize] == 0;
        if self.entries.iter().any(|entry| may_run(self, entry)) {
            // A thread that the kernel has woken will say so in a moment: choosing before that would be a race.
            if !self.are_asleep(|slot| is_asleep(slot, false)) {
                return Step::Busy;
            }
            if let Some(slot) = self.choose(may_run) {
                self.go_on(slot);
                return Step::Run { slot };
            }
        }
        self.jump(is_external, |slot| is_asleep(slot, true))
    }

    fn are_asleep(&self, mut is_asleep: impl FnMut(usize) -> bool) -> bool {
        let mut entries = self.entries.iter().enumerate();
        entries.all(|(slot, entry)| !matches!(entry.state, State::Asleep | State::Parked) || is_asleep(slot))
    }

    fn jump(&mut self, is_external: impl FnOnce() -> bool, is_asleep: impl FnMut(usize) -> bool) -> Step {
        if self.entries.iter().any(|entry| matches!(entry.state, State::Running | State::Ready)) {
            return Step::Busy;
        }
        if self.entries.iter().all(|entry| entry.state == State::Free) {
            return Step::Empty;
        }
        let earliest = self.earliest();
        let is_due = |table: &Self, entry: &Entry| table.is_timed(entry) && entry.deadline_ns == earliest;
        let is_external = is_external();
        if !is_external && !self.are_asleep(is_asleep) {
            return Step::Busy;
        }
        match (earliest, is_external) {
            (NEVER, true) => Step::Busy,
            (NEVER, false) => Step::Deadlock,
            (_, true) => match self.entries.iter().position(|entry| is_due(self, entry)) {
                Some(slot) => Step::Follow { slot, deadline_ns: earliest },
                None => Step::Busy,
            },
            (to_ns, false) => match self.choose(is_due) {
                Some(slot) => {
                    self.end_wait(slot, Outcome::TimedOut);
                    self.go_on(slot);
                    Step::Jump { slot, to_ns }
                }
                None => Step::Busy,
            },
        }
    }

    /// The next moment that anybody waits for whom time alone can help; [`NEVER`] for none.
    pub fn earliest(&self) -> i64 {
        self.entries.iter().filter(|entry| self.is_timed(entry)).map(|entry| entry.deadline_ns).min().unwrap_or(NEVER)
    }

    /// Whether a thread waits, and no journal says how that ends.
    fn is_timed(&self, entry: &Entry) -> bool {
        let is_recorded = |order: &Order| order.next().is_some() && order.knows(entry.pedigree);
        matches!(entry.state, State::Parked | State::Asleep) && !self.order.as_deref().is_some_and(is_recorded)
    }

    /// Whether the journal decides.
    fn is_ordered(&self) -> bool {
        self.order.as_deref().is_some_and(Order::is_followed)
    }

    /// Whether the wait of the thread timed out when recorded, so that nothing else may end it.
    pub fn is_timed_out(&self, slot: usize) -> bool {
        let entry = &self.entries[slot];
        matches!(entry.state, State::Parked | State::Asleep)
            && entry.deadline_ns != NEVER
            && self.order.as_deref().is_some_and(|order| order.is_timed_out(entry.pedigree))
    }

    /// What the journal has next. None: it decides nothing any more.
    ///
    /// Where nobody runs, and nothing from outside is waited for, the thread that is next may still have nobody to wake it:
    /// programs that walk through sets of objects join their threads in another order each time. Then the one goes on whose
    /// turn comes first of those that can, and from there on a difference is no error any more.
    fn next_recorded(&mut self, mut is_asleep: impl FnMut(usize, bool) -> bool) -> Option<Step> {
        let order = self.order.as_deref()?;
        let next = *order.next()?;
        let is_idle = !self.entries.iter().any(|entry| entry.state == State::Running);
        let able =
            self.entries.iter().enumerate().filter_map(|(slot, entry)| Some((self.turn_of(order, entry)?, slot)));
        let may_wait = !next.is_for_outside() || !order.is_in_next(next.pedigree);
        match able.min() {
            Some((turn, slot)) if turn <= next.turn => Some(self.end_as_recorded(slot)),
            Some(_) if is_idle && may_wait && !self.are_asleep(|slot| is_asleep(slot, false)) => Some(Step::Busy),
            Some((_, slot)) if is_idle && may_wait => {
                self.order.iter_mut().for_each(|order| order.leave_turn());
                Some(self.end_as_recorded(slot))
            }
            _ if is_idle => Some(Step::Deadlock),
            _ => Some(Step::Busy),
        }
    }

    /// Which turn of the journal a thread would take if it went on now. None: it cannot.
    fn turn_of(&self, order: &Order, entry: &Entry) -> Option<u32> {
        if entry.is_host && self.batons[entry.process as usize] != 0 {
            return None;
        }
        match entry.state {
            State::Ready if !order.knows(entry.pedigree) => Some(0),
            State::Ready => Some(order.turn_of(entry.pedigree).unwrap_or(u32::MAX)),
            State::Parked | State::Asleep => match order.end_of(entry.pedigree)?.how {
                Wake::TimedOut if entry.deadline_ns == NEVER => None,
                Wake::TimedOut | Wake::Deadlock => order.turn_of(entry.pedigree),
                _ => None,
            },
            State::Free | State::Running => None,
        }
    }

    /// A thread that can go on does.
    fn end_as_recorded(&mut self, slot: usize) -> Step {
        let Entry { state, pedigree, deadline_ns: to_ns, .. } = self.entries[slot];
        if state == State::Ready {
            self.go_on(slot);
            return Step::Run { slot };
        }
        let has_timed_out = self.order.as_deref().is_some_and(|order| order.is_timed_out(pedigree));
        self.end_wait(slot, if has_timed_out { Outcome::TimedOut } else { Outcome::Deadlock });
        self.go_on(slot);
        if has_timed_out {
            Step::Jump { slot, to_ns }
        } else {
            Step::Run { slot }
        }
    }

    /// The waiting thread that the recorded one woke.
    fn choose_recorded(&mut self, by: u64, is_candidate: impl Fn(&Self, &Entry) -> bool) -> Option<usize> {
        let order = self.order.as_deref()?;
        let candidates = self.entries.iter().enumerate().filter(|(_, entry)| is_candidate(self, entry));
        let ranked = candidates.filter_map(|(slot, entry)| Some((order.rank(entry.pedigree, by)?, slot)));
        ranked.min().map(|(_, slot)| slot)
    }

    /// A thread whose wait is over runs from now on.
    fn go_on(&mut self, slot: usize) {
        if self.entries[slot].state == State::Ready {
            self.entries[slot].state = State::Running;
            self.try_give_baton(slot);
            self.take_turn(slot);
        }
    }

    /// What the journal has of the thread's wait is used up.
    fn take_turn(&mut self, slot: usize) {
        let pedigree = self.entries[slot].pedigree;
        if let Some(order) = &mut self.order {
            order.take(pedigree);
        }
    }

    /// One of the threads for which `is_candidate` holds, each equally likely, by the seed. One candidate is no choice.
    fn choose(&mut self, is_candidate: impl Fn(&Self, &Entry) -> bool) -> Option<usize> {
        let (seed, choice) = (self.seed, *self.choices);
        let mut best: Option<(u64, usize)> = None;
        let mut count = 0u64;
        for (slot, entry) in self.entries.iter().enumerate() {
            if !is_candidate(self, entry) {
                continue;
            }
            count += 1;
            let rank = mix(seed ^ mix(choice ^ mix(entry.pedigree)));
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, slot));
            }
        }
        *self.choices += u64::from(count > 1);
        best.map(|(_, slot)| slot)
    }

    fn end_wait(&mut self, slot: usize, outcome: Outcome) {
        let entry = &mut self.entries[slot];
        if matches!(entry.state, State::Parked | State::Asleep) {
            entry.state = if entry.is_host { State::Ready } else { State::Running };
            entry.outcome = outcome;
            entry.deadline_ns = NEVER;
            entry.channel = 0;
            entry.holds_host = false;
            if entry.state == State::Running {
                self.take_turn(slot);
            }
        }
    }

    fn try_give_baton(&mut self, slot: usize) {
        let entry = &self.entries[slot];
        let baton = &mut self.batons[entry.process as usize];
        if entry.is_host && *baton == 0 {
            *baton = slot as u32 + 1;
        }
    }

    fn give_up_baton(&mut self, slot: usize) {
        if self.has_baton(slot) {
            self.batons[self.entries[slot].process as usize] = 0;
        }
    }
}

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_journal::Event;

    struct Table {
        entries: [Entry; 8],
        batons: [u32; 2],
        choices: u64,
        seed: u64,
    }

    impl Table {
        fn new(seed: u64) -> Table {
            Table { entries: [Entry::default(); 8], batons: [0; 2], choices: 0, seed }
        }

        fn with<R>(&mut self, act: impl FnOnce(&mut Scheduler<'_>) -> R) -> R {
            let Table { entries, batons, choices, seed } = self;
            act(&mut Scheduler { entries, batons, choices, seed: *seed, order: None })
        }

        fn next(&mut self) -> Step {
            self.with(|table| table.next(|| false, |_, _| true))
        }
    }

    #[test]
    fn time_jumps_to_the_earliest_deadline_when_nobody_can_run() {
        let mut table = Table::new(1);
        table.with(|table| table.add(0, 0, true, 10, true));
        table.with(|table| table.add(1, 0, true, 11, false));
        assert_eq!(table.next(), Step::Busy, "the first one runs");
        table.with(|table| table.wait(0, 0, 500, false, false));
        assert_eq!(table.next(), Step::Run { slot: 1 });
        table.with(|table| table.wait(1, 0, 300, false, false));
        assert_eq!(table.next(), Step::Jump { slot: 1, to_ns: 300 });
        table.with(|table| table.remove(1));
        assert_eq!(table.next(), Step::Jump { slot: 0, to_ns: 500 });
        assert_eq!(table.entries[0].outcome, Outcome::TimedOut);
    }

    #[test]
    fn a_native_thread_that_runs_holds_time() {
        let mut table = Table::new(1);
        table.with(|table| table.add(0, 0, true, 10, true));
        table.with(|table| table.add(1, 0, false, 11, false));
        table.with(|table| table.wait(0, 0, 500, false, false));
        assert_eq!(table.next(), Step::Busy);
        table.with(|table| table.observe(1, true));
        assert_eq!(table.with(|table| table.next(|| false, |_, _| false)), Step::Busy, "the kernel has woken it");
        assert_eq!(table.next(), Step::Jump { slot: 0, to_ns: 500 });
    }

    #[test]
    fn what_a_child_left_behind_is_seen_before_time_jumps() {
        let mut table = Table::new(1);
        table.with(|table| table.add(0, 0, true, 10, true));
        table.with(|table| table.wait(0, 0, 900, true, false));
        let step = table.with(|table| table.next(|| false, |_, is_final| !is_final));
        assert_eq!(step, Step::Busy);
    }

    #[test]
    fn outside_answers_make_time_real_and_silence_is_a_deadlock() {
        let mut table = Table::new(1);
        table.with(|table| table.add(0, 0, true, 10, true));
        table.with(|table| table.wait(0, 7, 900, false, false));
        let external = table.with(|table| table.next(|| true, |_, _| true));
        assert_eq!(external, Step::Follow { slot: 0, deadline_ns: 900 });
        assert_eq!(table.with(|table| table.signal(0, 7, 1, NOBODY, |_| ())), 1);
        assert_eq!(table.next(), Step::Run { slot: 0 });
        table.with(|table| table.wait(0, 7, NEVER, false, false));
        assert_eq!(table.next(), Step::Deadlock);
    }

    #[test]
    fn seeds_choose_different_orders_and_each_seed_the_same() {
        let order = |seed| {
            let mut table = Table::new(seed);
            table.with(|table| table.add(0, 0, true, 0, true));
            for slot in 1..6 {
                table.with(|table| table.add(slot, 0, true, 100 + slot as u64, false));
            }
            table.with(|table| table.wait(0, 1, NEVER, false, false));
            let mut seen = Vec::new();
            while let Step::Run { slot } = table.next() {
                seen.push(slot);
                table.with(|table| table.remove(slot));
            }
            seen
        };
        assert_eq!(order(3), order(3));
        let all: std::collections::BTreeSet<_> = (0..40).map(order).collect();
        assert!(all.len() > 20, "{} orders of 120", all.len());
    }

    /// A small random machine, many steps: whatever happens, the promises of the module's header hold.
    #[test]
    fn promises_hold_under_random_histories() {
        for seed in 0..300u64 {
            let mut table = Table::new(seed);
            let mut state = seed;
            let mut now_ns = 0;
            let mut draw = |bound: u64| {
                state = mix(state);
                state % bound
            };
            table.with(|table| table.add(0, 0, true, 0, true));
            for _ in 0..200 {
                let slot = draw(8) as usize;
                let entry = table.entries[slot];
                match (entry.state, draw(5)) {
                    (State::Free, 0) => {
                        table.with(|table| table.add(slot, 0, !slot.is_multiple_of(3), slot as u64, false))
                    }
                    (State::Running, 0) => table.with(|table| table.remove(slot)),
                    (State::Running, 1 | 2) => {
                        let deadline_ns = if draw(3) == 0 { NEVER } else { now_ns + draw(50) as i64 };
                        let (channel, in_kernel) = (1 + draw(3), draw(4) == 0);
                        table.with(|table| table.wait(slot, channel, deadline_ns, in_kernel, false));
                    }
                    (State::Running, 3) => {
                        let channel = 1 + draw(3);
                        table.with(|table| table.signal(0, channel, 1, NOBODY, |_| ()));
                    }
                    (State::Asleep, 4) => {
                        table.with(|table| table.come_back(slot, Outcome::Signalled));
                    }
                    _ => {}
                }
                check(&mut table, &mut now_ns);
            }
        }
    }

    /// A small program of threads that post and wait, run by the seed and written down, then run by another seed and the
    /// record: it goes the same way.
    #[test]
    fn a_recorded_history_is_followed_whatever_the_seed() {
        for seed in 0..200 {
            let mut recorded = Program::new(seed, None);
            let history = recorded.run();
            assert_eq!(recorded.steps, [STEPS; THREADS], "everybody came to its end");
            let mut builder = crate::order::Builder::new();
            for thread in 1..THREADS as u32 {
                let pedigree = u64::from(thread);
                builder.take(&Event::ThreadStart { thread, parent: 0, ordinal: thread, pedigree }, 0);
            }
            recorded.journal.iter().for_each(|event| builder.take(event, 0));
            let mut order = builder.finish();
            let mut replayed = Program::new(seed + 1, Some(&mut order));
            // What ran out of time when recorded does, however early it would have been woken.
            replayed.delay_ns = 1_000_000;
            let again = replayed.run();
            assert_eq!(again, history, "seed {seed}");
            assert_eq!((order.next(), order.is_loose()), (None, false));
        }
    }

    const THREADS: usize = 5;
    const STEPS: usize = 12;

    /// Threads that take turns with waiting for a channel, with and without a limit, and posting to one.
    struct Program<'a> {
        table: Table,
        order: Option<&'a mut Order>,
        steps: [usize; THREADS],
        history: Vec<(usize, Outcome)>,
        journal: Vec<Event<'static>>,
        delay_ns: i64,
        now_ns: i64,
        /// What the threads do: the same in both runs.
        seed: u64,
    }

    impl<'a> Program<'a> {
        fn new(seed: u64, order: Option<&'a mut Order>) -> Program<'a> {
            let (table, journal) = (Table::new(seed), Vec::new());
            let seed = if order.is_some() { seed - 1 } else { seed };
            Program { table, order, steps: [0; THREADS], history: vec![], journal, delay_ns: 0, now_ns: 0, seed }
        }

        fn with<R>(&mut self, act: impl FnOnce(&mut Scheduler<'_>) -> R) -> R {
            let Table { entries, batons, choices, seed } = &mut self.table;
            let order = self.order.as_deref_mut();
            act(&mut Scheduler { entries, batons, choices, seed: *seed, order })
        }

        fn run(&mut self) -> Vec<(usize, Outcome)> {
            self.with(|table| table.add(0, 0, true, 0, true));
            for slot in 1..THREADS {
                self.with(|table| table.expect(slot as u64, true));
                self.with(|table| table.add(slot, 0, true, slot as u64, false));
            }
            self.go(0);
            loop {
                match self.with(|table| table.next(|| false, |_, _| true)) {
                    Step::Run { slot } => self.go(slot),
                    Step::Jump { slot, to_ns } => {
                        self.now_ns = self.now_ns.max(to_ns);
                        self.go(slot);
                    }
                    Step::Empty => return core::mem::take(&mut self.history),
                    Step::Deadlock => {
                        // Nobody posts any more: one gives up, as a test's main thread does.
                        let slot =
                            self.table.entries.iter().position(|entry| entry.state == State::Parked).expect("one");
                        self.with(|table| table.break_deadlock(slot));
                    }
                    step => panic!("{step:?}"),
                }
            }
        }

        /// The thread runs until it waits or ends.
        fn go(&mut self, slot: usize) {
            let Entry { outcome, by, .. } = self.table.entries[slot];
            self.history.push((slot, outcome));
            let how = match outcome {
                Outcome::TimedOut => Wake::TimedOut,
                Outcome::Deadlock => Wake::Deadlock,
                Outcome::Signalled => Wake::Woken,
                _ => Wake::Turn,
            };
            if slot != 0 || self.steps[0] != 0 {
                let by = if how == Wake::Woken { by as i32 } else { -1 };
                self.journal.push(Event::Wake { thread: slot as u32, how, by });
            }
            loop {
                let step = self.steps[slot];
                if step == STEPS {
                    return self.with(|table| table.remove(slot));
                }
                self.steps[slot] += 1;
                let choice = mix(self.seed ^ mix((slot * STEPS + step) as u64));
                let channel = 1 + choice % 3;
                if choice & 64 == 0 {
                    self.with(|table| table.signal(0, channel, 1, slot as u64, |_| ()));
                } else {
                    return self.wait(slot, channel, (choice & 128 == 0).then_some((choice >> 8) as i64 % 50));
                }
            }
        }

        fn wait(&mut self, slot: usize, channel: u64, limit_ns: Option<i64>) {
            let duration_ns = limit_ns.unwrap_or(-1);
            let kind = hermetic_journal::WaitKind::Lock;
            self.journal.push(Event::Wait { thread: slot as u32, site: 0, kind, duration_ns });
            let deadline_ns = limit_ns.map_or(NEVER, |limit_ns| self.now_ns + limit_ns + self.delay_ns);
            let asked = Asked { kind, site: 0, duration_ns };
            let begun = self.with(|table| table.begin_recorded(slot, Some(&asked), false));
            assert!(matches!(begun, Begun::Recorded | Begun::Free), "{begun:?}");
            self.with(|table| table.wait(slot, channel, deadline_ns, false, false));
        }
    }

    #[test]
    fn input_that_comes_early_does_not_end_a_wait_that_timed_out() {
        let mut builder = crate::order::Builder::new();
        let (kind, duration_ns) = (hermetic_journal::WaitKind::Poll, 500);
        builder.take(&Event::Wait { thread: 0, site: 0, kind, duration_ns }, 0);
        builder.take(&Event::Wake { thread: 0, how: Wake::TimedOut, by: -1 }, 0);
        let mut order = builder.finish();
        let mut program = Program::new(1, Some(&mut order));
        let asked = Asked { kind, site: 0, duration_ns };
        program.with(|table| table.add(0, 0, true, 0, true));
        assert_eq!(program.with(|table| table.begin_recorded(0, Some(&asked), true)), Begun::Recorded);
        program.with(|table| table.wait(0, 0, 500, true, false));
        assert!(!program.with(|table| table.come_back(0, Outcome::Signalled)));
        let step = program.with(|table| table.next(|| false, |_, _| false));
        assert_eq!(step, Step::Jump { slot: 0, to_ns: 500 });
        assert_eq!(program.table.entries[0].outcome, Outcome::TimedOut);
    }

    #[test]
    fn time_comes_for_guests_when_nobody_else_goes_on() {
        let (kind, duration_ns) = (hermetic_journal::WaitKind::Lock, -1);
        let mut builder = crate::order::Builder::new();
        builder.take(&Event::Wait { thread: 0, site: 0, kind, duration_ns }, 0);
        builder.take(&Event::Wake { thread: 0, how: Wake::Woken, by: -1 }, 0);
        let mut order = builder.finish();
        let mut program = Program::new(1, Some(&mut order));
        let asked = Asked { kind, site: 0, duration_ns };
        program.with(|table| table.add(0, 0, true, 0, true));
        program.with(|table| table.add(1, 0, true, 77, false));
        assert_eq!(program.with(|table| table.begin_recorded(0, Some(&asked), false)), Begun::Recorded);
        program.with(|table| table.wait(0, 7, NEVER, false, false));
        assert_eq!(program.with(|table| table.next(|| false, |_, _| true)), Step::Run { slot: 1 });
        assert_eq!(program.with(|table| table.begin_recorded(1, Some(&asked), false)), Begun::Free);
        program.with(|table| table.wait(1, 9, 500, false, false));
        assert_eq!(program.with(|table| table.next(|| false, |_, _| true)), Step::Jump { slot: 1, to_ns: 500 });
        assert_eq!(program.with(|table| table.signal(0, 7, 1, 77, |_| ())), 1);
        program.with(|table| table.remove(1));
        assert_eq!(program.with(|table| table.next(|| false, |_, _| true)), Step::Run { slot: 0 });
    }

    #[test]
    fn one_that_is_next_and_never_could_go_on_is_passed_over() {
        let lock = hermetic_journal::WaitKind::Lock;
        let wait = |thread| Event::Wait { thread, site: 0, kind: lock, duration_ns: -1 };
        let woken = |thread, by| Event::Wake { thread, how: Wake::Woken, by };
        let mut builder = crate::order::Builder::new();
        builder.take(&Event::ThreadStart { thread: 1, parent: 0, ordinal: 0, pedigree: 1 }, 0);
        [wait(0), wait(1), woken(0, 1), woken(1, 0)].iter().for_each(|event| builder.take(event, 0));
        let mut order = builder.finish();
        let mut program = Program::new(1, Some(&mut order));
        let asked = Asked { kind: lock, site: 0, duration_ns: -1 };
        program.with(|table| table.add(0, 0, true, 0, true));
        program.with(|table| table.add(1, 0, true, 1, false));
        for slot in [0, 1] {
            program.with(|table| table.begin_recorded(slot, Some(&asked), false));
            program.with(|table| table.wait(slot, 7 + slot as u64, NEVER, false, false));
        }
        assert_eq!(program.with(|table| table.next(|| false, |_, _| true)), Step::Deadlock);
        program.with(|table| table.signal(0, 8, 1, 0, |_| ()));
        assert_eq!(program.with(|table| table.next(|| false, |_, _| false)), Step::Busy, "somebody is about to wake");
        assert_eq!(program.with(|table| table.next(|| false, |_, _| true)), Step::Run { slot: 1 });
        assert!(order.is_loose());
    }

    fn check(table: &mut Table, now_ns: &mut i64) {
        let before = table.entries;
        let someone_could_run = before.iter().any(|entry| matches!(entry.state, State::Running | State::Ready));
        match table.next() {
            Step::Jump { slot, to_ns } => {
                assert!(!someone_could_run, "jumped over a thread that could run");
                assert!(to_ns >= *now_ns, "time went back");
                let waiting = |entry: &&Entry| matches!(entry.state, State::Parked | State::Asleep);
                let earliest = before.iter().filter(waiting).map(|entry| entry.deadline_ns).min();
                assert_eq!((earliest, before[slot].deadline_ns), (Some(to_ns), to_ns));
                *now_ns = to_ns;
            }
            Step::Run { slot } => assert_eq!(before[slot].state, State::Ready),
            Step::Deadlock | Step::Empty => assert!(!someone_could_run),
            Step::Busy => assert!(someone_could_run),
            Step::Follow { .. } => unreachable!("nothing is external here"),
        }
        let running = |entry: &&Entry| entry.is_host && entry.state == State::Running;
        assert!(table.entries.iter().filter(running).count() <= 1, "one host thread at a time");
        if let Some(slot) = table.with(|table| table.holder(0)) {
            assert_eq!(table.entries[slot].state, State::Running, "who holds the baton runs");
        }
    }
}
