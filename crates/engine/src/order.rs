//! The recorded order of threads: who went on when, and why.
//!
//! While a test is replayed its waits take no time, and where the scheduler would ask the seed it follows the journal. Each
//! thread's waits are found in the order in which it made them; a wait that timed out when recorded times out, one that was
//! woken may not, and threads go on in the recorded order of their turns.
//!
//! What comes from outside of the process (a byte on a pipe, the end of a child, a post by a thread that the sandbox does not
//! know) comes at its own moment again. A recorded wait for it may be left out, because it came before it was waited for;
//! and one that the journal does not have is made while the thread keeps its turn.
//!
//! Threads of a wider sandbox (the server of a session's fixture) are guests in this one. How far they have come when the test
//! begins is not the same each time, so no order is theirs or of the threads that they start, and what they do for the test comes
//! from outside too.
//!
//! Nothing here allocates after [`Builder::finish`]: it is asked with the scheduler's lock held.

use hermetic_journal::{Event, WaitKind, Wake, GUEST};
use hermetic_model::stream::Pedigree;
use std::collections::{HashMap, HashSet, VecDeque};

/// Who ended a wait where no thread did: time, or the kernel.
pub const NOBODY: u64 = u64::MAX;
/// A thread that takes no part.
pub const OUTSIDE: u64 = u64::MAX - 1;

/// A wait that a thread asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub kind: WaitKind,
    /// Call site: when recording its number, when replaying its function's.
    pub site: u32,
    /// Negative where there is no limit.
    pub duration_ns: i64,
}

/// How a recorded wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub how: Wake,
    /// Pedigree of the thread that ended it, [`NOBODY`] or [`OUTSIDE`].
    pub by: u64,
}

/// A recorded wait, or (`asked` is none) a turn that a thread took without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedWait {
    pub pedigree: u64,
    pub asked: Option<Asked>,
    /// None: it had not ended when the recording did.
    pub end: Option<End>,
    /// Which turn its end is.
    pub turn: u32,
    /// So many calls of the thread that might have waited did not, since the wait before.
    looks: u32,
    is_used: bool,
}

impl RecordedWait {
    /// Whether it can be left out, because what it waited for may come at another moment.
    fn is_skippable(&self) -> bool {
        match self.end {
            Some(End { how: Wake::Kernel | Wake::Turn, .. } | End { how: Wake::Woken, by: OUTSIDE }) => true,
            Some(_) => false,
            None => self.asked.is_some_and(|asked| is_for_kernel(asked.kind)),
        }
    }

    /// Whether no thread of the sandbox ended it.
    pub fn is_for_outside(&self) -> bool {
        self.end.is_some_and(|end| match end.how {
            Wake::Kernel | Wake::Interrupted => true,
            Wake::Woken => end.by == OUTSIDE,
            Wake::Turn | Wake::TimedOut | Wake::Deadlock => false,
        })
    }

    /// Whether a thread that makes all its recorded waits makes this one.
    fn is_due(&self) -> bool {
        self.asked.is_some()
            && !self.is_skippable()
            && self.end.is_some_and(|end| matches!(end.how, Wake::Woken | Wake::TimedOut))
    }

    fn is_like(&self, asked: &Asked) -> bool {
        self.asked.is_some_and(|own| {
            (own.kind, own.site, own.duration_ns < 0) == (asked.kind, asked.site, asked.duration_ns < 0)
        })
    }
}

/// Whether such a wait is for what only the kernel sees, and never for another thread's call.
fn is_for_kernel(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Poll | WaitKind::Socket | WaitKind::Signal | WaitKind::Other)
}

/// What the journal says to a wait that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The journal has it, and decides how it ends.
    Recorded,
    /// It was not waited for when recorded; the thread keeps its turn while it waits.
    Unrecorded,
    /// The journal has something else, namely this. From now on it decides nothing any more; the caller tells of it.
    Parted(Option<RecordedWait>),
    /// The journal decides nothing here: any more, or for this thread.
    Free,
}

/// What a call that looks before it waits did when recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glanced {
    /// It did not wait.
    Looked,
    /// It let others run, and looked again.
    Yielded,
    /// It waited.
    Waited,
}

/// A thread's waits.
#[derive(Default)]
struct Line {
    waits: Vec<u32>,
    /// The first that was not made yet.
    next: usize,
    /// Calls that might have waited and did not, since the last that was made.
    looks: u32,
    /// In the order of the calls.
    found: Vec<Found>,
    /// The first of them that was not shown yet.
    shown: usize,
    /// How many bytes calls got, behind their functions, in the order of the calls.
    got: VecDeque<(u32, u32)>,
    /// The one that it is in.
    current: Option<u32>,
}

/// What a call found.
struct Found {
    /// Where the thread's line was then: its next wait, and the looks before that.
    at: (usize, u32),
    places: u64,
}

/// The order, and how far it was followed.
#[derive(Default)]
pub struct Order {
    waits: Vec<RecordedWait>,
    /// Indices of waits in the order of their ends.
    turns: Vec<u32>,
    next: usize,
    lines: HashMap<u64, Line>,
    is_parted: bool,
    /// A thread had to go on before its turn.
    is_loose: bool,
    /// What calls found when recorded does not come any more.
    is_blind: bool,
    /// What was waited for in vain, until a thread was told.
    missed: Option<RecordedWait>,
    /// What threads that have ended did not make.
    left: Left,
}

/// Recorded waits that nobody made, although their threads made all that they ever will.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    pub count: usize,
    pub first: Option<RecordedWait>,
}

/// Collects an order while a journal is read.
#[derive(Default)]
pub struct Builder {
    order: Order,
    /// By the journal's number.
    threads: HashMap<u32, Reading>,
    guests: HashSet<u32>,
}

/// A thread while its journal is read.
struct Reading {
    pedigree: u64,
    /// Its wait that has not ended.
    open: Option<u32>,
    /// Its calls that did not wait, since the last that did.
    looks: u32,
}

impl Builder {
    pub fn new() -> Builder {
        let mut builder = Builder::default();
        builder.start(0, Pedigree::ROOT.0);
        builder
    }

    /// Takes what concerns the order; `site` is the function of the event's call site.
    pub fn take(&mut self, event: &Event<'_>, site: u32) {
        match *event {
            Event::ThreadStart { thread, parent, ordinal, .. } if ordinal == GUEST || self.guests.contains(&parent) => {
                self.guests.insert(thread);
            }
            Event::ThreadStart { thread, pedigree, .. } => self.start(thread, pedigree),
            Event::Wait { thread, kind, duration_ns, .. } => {
                let asked = Asked { kind, site, duration_ns };
                let open = self.threads.get(&thread).and_then(|reading| reading.open);
                if open.is_some_and(|open| self.order.waits[open as usize].is_like(&asked)) {
                    // It goes on after a sandbox above this one was entered or left.
                    return;
                }
                let index = self.push(thread, Some(asked));
                if let Some(reading) = self.threads.get_mut(&thread) {
                    reading.open = index;
                }
            }
            Event::Looks { thread, count } => {
                if let Some(reading) = self.threads.get_mut(&thread) {
                    reading.looks = reading.looks.saturating_add(count);
                }
            }
            Event::Found { thread, places } => {
                let Some(reading) = self.threads.get(&thread) else { return };
                if let Some(line) = self.order.lines.get_mut(&reading.pedigree) {
                    line.found.push(Found { at: (line.waits.len(), reading.looks), places });
                }
            }
            Event::Got { thread, count, .. } => {
                let Some(reading) = self.threads.get(&thread) else { return };
                if let Some(line) = self.order.lines.get_mut(&reading.pedigree) {
                    line.got.push_back((site, count));
                }
            }
            Event::Wake { thread, how, by } => {
                let open = self.threads.get_mut(&thread).and_then(|reading| reading.open.take());
                let Some(index) = open.or_else(|| self.push(thread, None)) else { return };
                let by = match (how, u32::try_from(by)) {
                    (Wake::Woken, Ok(by)) => self.threads.get(&by).map_or(OUTSIDE, |reading| reading.pedigree),
                    (Wake::Woken, Err(_)) => OUTSIDE,
                    _ => NOBODY,
                };
                let wait = &mut self.order.waits[index as usize];
                (wait.end, wait.turn) = (Some(End { how, by }), self.order.turns.len() as u32);
                self.order.turns.push(index);
            }
            _ => {}
        }
    }

    fn start(&mut self, thread: u32, pedigree: u64) {
        self.threads.insert(thread, Reading { pedigree, open: None, looks: 0 });
        self.order.lines.entry(pedigree).or_default();
    }

    fn push(&mut self, thread: u32, asked: Option<Asked>) -> Option<u32> {
        let reading = self.threads.get_mut(&thread)?;
        let (pedigree, looks) = (reading.pedigree, core::mem::take(&mut reading.looks));
        let index = self.order.waits.len() as u32;
        self.order.waits.push(RecordedWait { pedigree, asked, end: None, turn: u32::MAX, looks, is_used: false });
        self.order.lines.get_mut(&pedigree)?.waits.push(index);
        Some(index)
    }

    pub fn finish(self) -> Order {
        self.order
    }
}

impl Order {
    /// A thread is about to wait. `in_kernel`: for nothing but what the kernel sees.
    pub fn begin(&mut self, pedigree: u64, asked: &Asked, in_kernel: bool) -> Begun {
        let Some(line) = self.lines.get(&pedigree).filter(|_| !self.is_parted) else { return Begun::Free };
        if line.current.is_some_and(|current| self.waits[current as usize].is_like(asked)) {
            // It goes on after a sandbox above this one was entered or left.
            return Begun::Recorded;
        }
        match self.find(pedigree, asked) {
            Some(found) => {
                self.move_to(pedigree, found);
                Begun::Recorded
            }
            None if in_kernel => Begun::Unrecorded,
            // A thread may have ended by itself before it was joined: of native ones no order is recorded.
            None if asked.kind == WaitKind::Join => Begun::Free,
            // Threads that outlive the test have no turn any more.
            None if pedigree != Pedigree::ROOT.0 && self.next().is_none() => Begun::Free,
            None => {
                self.is_parted = true;
                Begun::Parted(self.expected(pedigree).copied())
            }
        }
    }

    /// A thread makes a call that looks before it waits. What it did when recorded, if the journal says.
    pub fn glance(&mut self, pedigree: u64, asked: &Asked) -> Option<Glanced> {
        let line = self.lines.get_mut(&pedigree).filter(|_| !self.is_parted)?;
        let wait = &self.waits[*line.waits.get(line.next)? as usize];
        if line.looks < wait.looks {
            line.looks += 1;
            return Some(Glanced::Looked);
        }
        match wait.end.filter(|_| wait.is_like(asked))?.how {
            Wake::Turn => Some(Glanced::Yielded),
            _ => Some(Glanced::Waited),
        }
    }

    /// Which descriptors the thread's call found ready that has looked or waited last: bits by their places. 0: the journal tells
    /// of none. None: it tells nothing any more.
    pub fn found(&mut self, pedigree: u64) -> Option<u64> {
        let line = self.lines.get_mut(&pedigree).filter(|_| !self.is_parted && !self.is_blind)?;
        let at = (line.next, line.looks);
        while line.found.get(line.shown).is_some_and(|found| found.at < at) {
            line.shown += 1;
        }
        let found = line.found.get(line.shown).filter(|found| found.at == at);
        line.shown += usize::from(found.is_some());
        Some(found.map_or(0, |found| found.places))
    }

    /// What was found when recorded did not come: from here on calls find what there is.
    pub fn give_up_found(&mut self) {
        (self.is_blind, self.is_loose) = (true, true);
    }

    /// How many bytes the thread's next call got that gets some, if it was in that function. None: the journal does not say.
    pub fn next_got(&self, pedigree: u64, function: u32) -> Option<u32> {
        let line = self.lines.get(&pedigree).filter(|_| !self.is_parted)?;
        line.got.front().filter(|(own, _)| *own == function).map(|(_, count)| *count)
    }

    /// The thread's call in that function got some.
    pub fn take_got(&mut self, pedigree: u64, function: u32) {
        if self.next_got(pedigree, function).is_some() {
            self.lines.get_mut(&pedigree).and_then(|line| line.got.pop_front());
        }
    }

    /// The place in the thread's line of the recorded wait that is meant: an equal one, or else the next one that is like it.
    fn find(&self, pedigree: u64, asked: &Asked) -> Option<usize> {
        let line = self.lines.get(&pedigree)?;
        let mut like = None;
        for (place, &index) in line.waits.iter().enumerate().skip(line.next) {
            let wait = &self.waits[index as usize];
            if wait.asked == Some(*asked) {
                return Some(place);
            }
            if like.is_none() && wait.is_like(asked) {
                like = Some(place);
            }
            if !wait.is_skippable() {
                break;
            }
        }
        like
    }

    /// Whether the thread took part when recorded. A guest is left to itself.
    pub fn knows(&self, pedigree: u64) -> bool {
        self.lines.contains_key(&pedigree)
    }

    /// A thread is about to wait for its turn and for nothing else. False: it took none when recorded.
    pub fn begin_turn(&mut self, pedigree: u64) -> bool {
        let Some(line) = self.lines.get(&pedigree).filter(|_| !self.is_parted) else { return true };
        let next = line.waits.get(line.next).map(|&index| &self.waits[index as usize]);
        let is_turn = next.is_some_and(|wait| wait.asked.is_none());
        if is_turn {
            self.move_to(pedigree, line.next);
        }
        is_turn
    }

    /// The thread is in the wait at that place of its line; those before it were left out.
    fn move_to(&mut self, pedigree: u64, place: usize) {
        let Order { lines, waits, .. } = self;
        let Some(line) = lines.get_mut(&pedigree) else { return };
        for &index in &line.waits[line.next..place] {
            waits[index as usize].is_used = true;
        }
        line.current = Some(line.waits[place]);
        (line.next, line.looks) = (place + 1, 0);
        self.skip_used();
    }

    /// The thread goes on: its wait is over.
    pub fn take(&mut self, pedigree: u64) {
        let current = self.lines.get_mut(&pedigree).and_then(|line| line.current.take());
        if let Some(index) = current {
            self.waits[index as usize].is_used = true;
            self.skip_used();
        }
    }

    /// The thread ends: what the journal still has of it is left out.
    pub fn end(&mut self, pedigree: u64) {
        self.left = self.left_of(pedigree);
        let Order { lines, waits, .. } = self;
        let Some(line) = lines.get_mut(&pedigree) else { return };
        let rest = line.waits[line.next..].iter().copied().chain(line.current.take());
        rest.for_each(|index| waits[index as usize].is_used = true);
        line.next = line.waits.len();
        self.skip_used();
    }

    /// What is left of the journal when the sandbox is: of threads that have ended, and of the test's own. Nothing where the
    /// journal has stopped deciding, which was told already.
    pub fn left(&self) -> Left {
        if self.is_parted || self.is_loose {
            return Left::default();
        }
        self.left_of(Pedigree::ROOT.0)
    }

    /// What is left with that of one more thread.
    fn left_of(&self, pedigree: u64) -> Left {
        let rest = self.lines.get(&pedigree).map_or(&[][..], |line| &line.waits[line.next..]);
        let due = rest.iter().map(|&index| self.waits[index as usize]).filter(RecordedWait::is_due);
        let Left { count, first } = self.left;
        Left { count: count + due.clone().count(), first: first.or_else(|| due.clone().next()) }
    }

    fn skip_used(&mut self) {
        while self.turns.get(self.next).is_some_and(|&index| self.waits[index as usize].is_used) {
            self.next += 1;
        }
    }

    /// The next turn; none where the journal decides nothing any more.
    pub fn next(&self) -> Option<&RecordedWait> {
        let index = self.turns.get(self.next).filter(|_| !self.is_parted)?;
        Some(&self.waits[*index as usize])
    }

    /// How the wait ends that the thread is in; none where the journal does not say.
    pub fn end_of(&self, pedigree: u64) -> Option<End> {
        let current = self.lines.get(&pedigree).filter(|_| !self.is_parted)?.current?;
        self.waits[current as usize].end
    }

    /// Which turn ends the wait that the thread is in.
    pub fn turn_of(&self, pedigree: u64) -> Option<u32> {
        let current = self.lines.get(&pedigree)?.current?;
        Some(self.waits[current as usize].turn)
    }

    /// Whether the thread is in the wait that the next turn ends.
    pub fn is_in_next(&self, pedigree: u64) -> bool {
        let current = self.lines.get(&pedigree).and_then(|line| line.current);
        current.is_some() && current == self.turns.get(self.next).copied()
    }

    /// Which of several waiting threads `by` wakes: the least wins. None: it was not woken when recorded. Those come last whose
    /// wait is not recorded at all.
    pub fn rank(&self, pedigree: u64, by: u64) -> Option<u64> {
        let Some(current) = self.lines.get(&pedigree).and_then(|line| line.current) else { return Some(u64::MAX) };
        let RecordedWait { end, turn, .. } = self.waits[current as usize];
        let end = end.filter(|end| matches!(end.how, Wake::Woken | Wake::Turn))?;
        Some(u64::from(turn) | u64::from(end.by != by) << 32)
    }

    /// What a thread has to be told where its wait for a descriptor ended early: that its time is up, as when recorded.
    pub fn is_timed_out(&self, pedigree: u64) -> bool {
        self.end_of(pedigree).is_some_and(|end| end.how == Wake::TimedOut)
    }

    /// From here on the journal decides nothing any more.
    pub fn part(&mut self) {
        self.is_parted = true;
    }

    /// A thread goes on before its turn, because the one that is next never could.
    pub fn leave_turn(&mut self) {
        self.is_loose = true;
    }

    /// Whether a thread had to go on before its turn.
    pub fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// As [`part`](Order::part), because nobody goes on: whoever is woken for it tells.
    pub fn miss(&mut self) {
        self.missed = self.next().copied();
        self.is_parted = true;
    }

    /// What was missed, once.
    pub fn take_missed(&mut self) -> Option<RecordedWait> {
        self.missed.take()
    }

    /// Whether the journal still decides.
    pub fn is_followed(&self) -> bool {
        !self.is_parted
    }

    /// The recorded wait that a thread has next.
    pub fn expected(&self, pedigree: u64) -> Option<&RecordedWait> {
        let line = self.lines.get(&pedigree)?;
        let index = line.current.or_else(|| line.waits.get(line.next).copied())?;
        Some(&self.waits[index as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEM: WaitKind = WaitKind::Semaphore;

    fn asked(kind: WaitKind, duration_ns: i64) -> Asked {
        Asked { kind, site: 1, duration_ns }
    }

    /// An order of these waits and ends; thread 1 is child 10.
    fn order(events: &[Event<'_>]) -> Order {
        let mut builder = Builder::new();
        builder.take(&Event::ThreadStart { thread: 1, parent: 0, ordinal: 0, pedigree: 10 }, 0);
        events.iter().for_each(|event| builder.take(event, 1));
        builder.finish()
    }

    fn wait(thread: u32, kind: WaitKind, duration_ns: i64) -> Event<'static> {
        Event::Wait { thread, site: 1, kind, duration_ns }
    }

    fn wake(thread: u32, how: Wake, by: i32) -> Event<'static> {
        Event::Wake { thread, how, by }
    }

    #[test]
    fn waits_end_as_recorded_and_in_the_order_of_their_ends() {
        let mut order =
            order(&[wait(0, SEM, 50), wait(1, SEM, 20), wake(1, Wake::TimedOut, -1), wake(0, Wake::Woken, 1)]);
        assert_eq!(order.begin(0, &asked(SEM, 50), false), Begun::Recorded);
        assert_eq!(order.begin(10, &asked(SEM, 20), false), Begun::Recorded);
        assert_eq!(order.next().map(|next| next.pedigree), Some(10));
        assert!(order.is_timed_out(10) && !order.is_timed_out(0));
        assert_eq!((order.rank(10, 0), order.rank(0, 10), order.rank(0, 7)), (None, Some(1), Some(1 | 1 << 32)));
        order.take(10);
        assert!(order.is_in_next(0));
        order.take(0);
        assert_eq!(order.next(), None);
    }

    #[test]
    fn what_came_from_outside_may_come_earlier() {
        let mut order = order(&[
            wait(0, WaitKind::Poll, -1),
            wake(0, Wake::Kernel, -1),
            wait(0, SEM, -1),
            wake(0, Wake::Woken, -1),
            wait(0, WaitKind::Sleep, 5),
            wake(0, Wake::TimedOut, -1),
        ]);
        assert_eq!(order.begin(0, &asked(WaitKind::Socket, -1), true), Begun::Unrecorded);
        assert_eq!(order.begin(0, &asked(WaitKind::Sleep, 5), false), Begun::Recorded);
        assert_eq!(order.next().and_then(|next| next.asked), Some(asked(WaitKind::Sleep, 5)));
    }

    #[test]
    fn equal_waits_are_preferred_to_those_that_are_only_alike() {
        let poll = |ms| [wait(0, WaitKind::Poll, ms), wake(0, Wake::Kernel, -1)];
        let mut order = order(&[poll(5), poll(7), poll(9)].concat());
        assert_eq!(order.begin(0, &asked(WaitKind::Poll, 7), true), Begun::Recorded);
        assert_eq!(order.turn_of(0), Some(1));
        order.take(0);
        // A deadline that was computed from readings of the clock may be another by some nanoseconds.
        assert_eq!(order.begin(0, &asked(WaitKind::Poll, 8), true), Begun::Recorded);
        assert_eq!(order.turn_of(0), Some(2));
    }

    #[test]
    fn another_wait_leaves_the_order_and_names_what_was_expected() {
        let mut order = order(&[wait(0, SEM, 50), wake(0, Wake::TimedOut, -1)]);
        let Begun::Parted(Some(expected)) = order.begin(0, &asked(SEM, -1), false) else {
            panic!("it is another wait")
        };
        assert_eq!(expected.asked, Some(asked(SEM, 50)));
        assert_eq!(order.begin(0, &asked(SEM, 50), false), Begun::Free);
        assert_eq!(order.next(), None);
    }

    #[test]
    fn a_wait_that_goes_on_is_the_same_and_threads_that_outlive_the_test_are_free() {
        let mut order = order(&[wait(1, SEM, 50), wait(1, SEM, 30), wake(1, Wake::Woken, 0), wait(1, SEM, -1)]);
        assert_eq!(order.begin(10, &asked(SEM, 50), false), Begun::Recorded);
        assert_eq!(order.begin(10, &asked(SEM, 20), false), Begun::Recorded);
        order.take(10);
        assert_eq!(order.next(), None);
        assert_eq!(order.begin(10, &asked(SEM, -1), false), Begun::Recorded, "it had not ended");
        order.take(10);
        assert_eq!(order.begin(10, &asked(SEM, -1), false), Begun::Free);
        assert!(
            matches!(order.begin(0, &asked(SEM, -1), false), Begun::Parted(None)),
            "the test's own waits are recorded"
        );
    }

    #[test]
    fn what_is_left_of_a_thread_that_ends_is_left_out() {
        let mut order = order(&[
            wait(1, SEM, -1),
            wake(1, Wake::Woken, 0),
            wait(1, SEM, -1),
            wake(1, Wake::Woken, 0),
            wait(0, SEM, -1),
            wake(0, Wake::Woken, 1),
        ]);
        assert_eq!(order.begin(10, &asked(SEM, -1), false), Begun::Recorded);
        order.end(10);
        assert_eq!(order.next().map(|next| next.pedigree), Some(0));
        order.end(10);
        order.end(77);
    }

    #[test]
    fn a_join_that_needed_no_wait_when_recorded_may_need_one_now() {
        let mut order = order(&[wait(0, SEM, -1), wake(0, Wake::TimedOut, -1)]);
        assert_eq!(order.begin(0, &asked(WaitKind::Join, -1), false), Begun::Free);
        assert!(order.is_followed());
        assert_eq!(order.rank(0, 10), Some(u64::MAX), "the end of the thread ends the wait");
        assert_eq!(order.begin(0, &asked(SEM, -1), false), Begun::Recorded);
        assert_eq!(order.rank(0, 10), None, "this one timed out");
    }

    #[test]
    fn guests_and_the_threads_that_they_start_have_no_order() {
        let mut builder = Builder::new();
        let start = |thread, parent, ordinal, pedigree| Event::ThreadStart { thread, parent, ordinal, pedigree };
        [
            start(1, 0, GUEST, 10),
            start(2, 1, 0, 20),
            wait(1, SEM, -1),
            wake(1, Wake::Turn, -1),
            wait(0, SEM, -1),
            wake(0, Wake::Woken, 2),
        ]
        .iter()
        .for_each(|event| builder.take(event, 1));
        let mut order = builder.finish();
        assert!(!order.knows(10) && !order.knows(20));
        assert_eq!(order.begin(10, &asked(SEM, 50), false), Begun::Free);
        assert_eq!(order.begin(0, &asked(SEM, -1), false), Begun::Recorded);
        assert!(order.next().is_some_and(RecordedWait::is_for_outside), "what a guest did counts as from outside");
    }

    #[test]
    fn what_a_thread_did_not_make_is_left_unless_it_may_be() {
        let events = [
            wait(0, SEM, -1),
            wake(0, Wake::Woken, 1),
            wait(0, WaitKind::Poll, 5),
            wake(0, Wake::Kernel, -1),
            wait(1, SEM, 7),
            wake(1, Wake::TimedOut, -1),
            wait(1, SEM, 7),
        ];
        let mut order = order(&events);
        assert_eq!(order.left().count, 1, "the other thread may still make its waits");
        order.end(10);
        let left = order.left();
        assert_eq!((left.count, left.first.map(|first| first.pedigree)), (2, Some(10)));
        order.leave_turn();
        assert_eq!(order.left().count, 0, "that the order was not followed is told already");
    }

    #[test]
    fn looks_before_a_wait_are_counted_and_what_they_found_is_shown_in_its_place() {
        let mut order = order(&[
            Event::Looks { thread: 0, count: 2 },
            Event::Found { thread: 0, places: 5 },
            Event::Looks { thread: 0, count: 1 },
            wait(0, WaitKind::Poll, -1),
            wake(0, Wake::Turn, -1),
            Event::Found { thread: 0, places: 2 },
            wait(0, WaitKind::Poll, -1),
            wake(0, Wake::Kernel, -1),
        ]);
        let poll = asked(WaitKind::Poll, -1);
        assert_eq!((order.glance(0, &poll), order.found(0)), (Some(Glanced::Looked), Some(0)));
        assert_eq!((order.glance(0, &poll), order.found(0)), (Some(Glanced::Looked), Some(5)));
        assert_eq!((order.glance(0, &poll), order.found(0)), (Some(Glanced::Looked), Some(0)));
        assert_eq!(order.glance(0, &poll), Some(Glanced::Yielded));
        assert_eq!(order.glance(0, &asked(SEM, -1)), None, "another call");
        assert_eq!(order.begin(0, &poll, false), Begun::Recorded);
        order.take(0);
        assert_eq!(order.found(0), Some(2));
        assert_eq!(order.glance(0, &poll), Some(Glanced::Waited));
        order.give_up_found();
        assert_eq!(order.found(0), None);
    }

    #[test]
    fn bytes_are_allowed_to_the_function_that_got_them() {
        let mut order =
            order(&[Event::Got { thread: 0, site: 1, count: 7 }, Event::Got { thread: 0, site: 1, count: 0 }]);
        assert_eq!((order.next_got(0, 2), order.next_got(0, 1)), (None, Some(7)));
        order.take_got(0, 2);
        order.take_got(0, 1);
        assert_eq!(order.next_got(0, 1), Some(0));
        order.take_got(0, 1);
        assert_eq!(order.next_got(0, 1), None);
    }

    #[test]
    fn turns_are_taken_only_where_they_were_recorded() {
        let mut order = order(&[wake(1, Wake::Turn, -1), wait(1, SEM, -1)]);
        assert!(order.begin_turn(10));
        order.take(10);
        assert!(!order.begin_turn(10), "a wait is next");
        assert!(order.begin_turn(77), "nothing is known of this thread");
    }
}
