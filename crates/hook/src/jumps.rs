//! Why time moved, or did not: a bounded list in the clock page, written where time is moved and read by front ends.
//!
//! Moves of all processes of a sandbox are in one list. Deciding whether time moves is left to the scheduler, carrying it out
//! to `settle` and `watch`.

use crate::children;
use crate::page::{Locked, Page, PROCESSES_MAX};
use core::fmt::Write;
use core::sync::atomic::Ordering;
use hermetic_abi::{Jump, Text};
use hermetic_journal::Reason;
use hermetic_sys::task::{self, Name};

/// Moves that are remembered; of more, the last ones.
pub const JUMPS_MAX: usize = 1024;

/// What moved time, or kept it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Nobody could run: on to the earliest deadline.
    #[default]
    Deadline = 0,
    Advance = 1,
    Set = 2,
    /// A child that takes no part runs.
    Child = 3,
    /// Somebody outside owes an answer.
    Answer = 4,
    /// Everybody waits for each other.
    Deadlock = 5,
    /// A thread computes for as long as the earliest deadline was away.
    Computed = 6,
}

/// One move.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Record {
    /// The wall clock before and after.
    before_ns: i64,
    after_ns: i64,
    kind: Kind,
    /// Whose deadline it was: number of the thread in its process, and whether that is a child.
    thread: u32,
    is_in_child: bool,
    /// Of the child.
    name: Name,
}

/// The list. All-zero bytes are an empty one.
#[repr(C)]
pub struct Log {
    /// Moves so far; the last [`JUMPS_MAX`] of them are kept.
    count: u64,
    /// The wall clock at entry.
    entry_ns: i64,
    /// Number of the record of the following that goes on, plus one; 0 for none.
    follow: u64,
    /// Threads that have sat down, by process: their numbers.
    threads: [u32; PROCESSES_MAX],
    records: [Record; JUMPS_MAX],
}

impl Log {
    /// Empties the list for a sandbox that shows this wall clock at its entry.
    pub fn begin(&mut self, entry_ns: i64) {
        (self.count, self.entry_ns, self.follow) = (0, entry_ns, 0);
        self.threads = [0; PROCESSES_MAX];
    }

    /// The number of a thread that sits down: 0 for the first of its process.
    pub fn number_thread(&mut self, process: u32) -> u32 {
        let next = &mut self.threads[process as usize];
        *next += 1;
        *next - 1
    }

    /// A place for a process is taken by another one.
    pub fn forget_process(&mut self, process: u32) {
        self.threads[process as usize] = 0;
    }

    /// The following of real time is over; a later one is a move of its own.
    pub fn end_following(&mut self) {
        self.follow = 0;
    }

    fn push(&mut self, record: Record) {
        self.records[(self.count % JUMPS_MAX as u64) as usize] = record;
        self.count += 1;
    }

    fn followed(&mut self, kind: Kind, before_ns: i64, after_ns: i64, name: Name) {
        // A loop that looks again and again waits for the same child.
        let goes_on = |last: &Record| last.kind == kind && last.name == name && last.after_ns == before_ns;
        if self.last().is_some_and(goes_on) {
            self.follow = self.count;
        }
        let is_kept = self.follow != 0 && self.count - (self.follow - 1) <= JUMPS_MAX as u64;
        if is_kept {
            let record = &mut self.records[((self.follow - 1) % JUMPS_MAX as u64) as usize];
            (record.after_ns, record.kind, record.name) = (after_ns, kind, name);
        } else {
            self.push(Record { before_ns, after_ns, kind, name, ..Record::default() });
            self.follow = self.count;
        }
    }

    /// The move number `index` of those that are kept, from the oldest.
    fn get(&self, index: u64) -> Option<(u64, &Record)> {
        let number = self.count.saturating_sub(JUMPS_MAX as u64).checked_add(index)?;
        (number < self.count).then(|| (number, &self.records[(number % JUMPS_MAX as u64) as usize]))
    }

    fn last(&self) -> Option<&Record> {
        let number = self.count.checked_sub(1)?;
        Some(&self.records[(number % JUMPS_MAX as u64) as usize])
    }
}

/// Notes that the clock is about to jump to the deadline of the thread in that place, as nobody can run.
pub fn note_deadline(locked: &mut Locked<'_>, slot: usize, to_ns: i64) {
    note_move(locked, Kind::Deadline, slot, to_ns);
}

/// Notes that the clock is about to come to the deadline of the thread in that place, although somebody computes.
pub fn note_computed(locked: &mut Locked<'_>, slot: usize, to_ns: i64) {
    note_move(locked, Kind::Computed, slot, to_ns);
}

fn note_move(locked: &mut Locked<'_>, kind: Kind, slot: usize, to_ns: i64) {
    let clockwork = &locked.page.front.clockwork;
    let step_ns = to_ns.saturating_sub(clockwork.elapsed());
    if step_ns <= 0 {
        return;
    }
    let before_ns = clockwork.wall();
    let after_ns = before_ns.saturating_add(step_ns);
    if locked.table().follow_real_ns != 0 {
        // Real time has brought it here.
        return note_following(locked, to_ns);
    }
    let cell = locked.page.cell(slot);
    let is_in_child = locked.table().entries[slot].process != 0;
    let name = if is_in_child { task::name(cell.process.load(Ordering::Relaxed)) } else { Name::default() };
    let thread = cell.number.load(Ordering::Relaxed);
    let record = Record { before_ns, after_ns, kind, thread, is_in_child, name };
    locked.table().log.push(record);
}

/// Notes that the clock is about to be taken to where real time is.
pub fn note_following(locked: &mut Locked<'_>, to_ns: i64) {
    let clockwork = &locked.page.front.clockwork;
    let before_ns = clockwork.wall();
    let after_ns = before_ns.saturating_add(to_ns.saturating_sub(clockwork.elapsed()).max(0));
    let table = locked.table();
    let (kind, name) = match table.follow_child {
        children::ANSWER => (Kind::Answer, Name::default()),
        child => (Kind::Child, task::name(child)),
    };
    table.log.followed(kind, before_ns, after_ns, name);
}

/// Notes that time stands because everybody waits for each other.
pub fn note_deadlock(locked: &mut Locked<'_>) {
    let now_ns = locked.page.front.clockwork.wall();
    let record = Record { before_ns: now_ns, after_ns: now_ns, kind: Kind::Deadlock, ..Record::default() };
    locked.table().log.push(record);
}

/// Notes that the handle has moved the wall clock.
pub fn note_handle(page: &Page, kind: Kind, before_ns: i64, after_ns: i64) {
    page.lock().table().log.push(Record { before_ns, after_ns, kind, ..Record::default() });
}

/// Why time moved last, in the words of journals.
pub fn last_reason(locked: &mut Locked<'_>) -> Reason {
    match locked.table().log.last().map(|record| record.kind) {
        Some(Kind::Child | Kind::Answer) => Reason::Real,
        _ => Reason::Deadline,
    }
}

/// Fills `out` with the move number `index` of those that are kept, from the oldest. False: there are not so many.
pub fn read(page: &Page, index: u32, out: &mut Jump) -> bool {
    let mut locked = page.lock();
    let log = &locked.table().log;
    let Some((number, &record)) = log.get(u64::from(index)) else { return false };
    let entry_ns = log.entry_ns;
    drop(locked);
    out.number = number;
    out.before_ns = record.before_ns.saturating_sub(entry_ns);
    out.after_ns = record.after_ns.saturating_sub(entry_ns);
    out.why = Text::new();
    let name = record.name.as_str();
    let (thread, why) = (record.thread, &mut out.why);
    // A text of fixed length is cut, and never fails.
    let _ = match record.kind {
        Kind::Deadline | Kind::Computed => {
            let _ = write!(why, "deadline of thread {thread}");
            if record.is_in_child {
                let _ = write!(why, " of child {name}");
            }
            match record.kind {
                Kind::Computed => why.write_str(", which came while another thread computed"),
                _ => Ok(()),
            }
        }
        Kind::Advance => why.write_str("advance"),
        Kind::Set => why.write_str("set"),
        Kind::Child => write!(why, "followed real time: child {name} runs and takes no part"),
        Kind::Answer => why.write_str("followed real time: somebody outside owes an answer"),
        Kind::Deadlock => why.write_str("not jumped: every thread waits, and none of them for a time"),
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Box<Log> {
        Box::new(Log {
            count: 0,
            entry_ns: 0,
            follow: 0,
            threads: [0; PROCESSES_MAX],
            records: [Record::default(); JUMPS_MAX],
        })
    }

    #[test]
    fn the_last_moves_are_kept_and_keep_their_numbers() {
        let mut log = log();
        for step in 0..JUMPS_MAX as i64 + 10 {
            log.push(Record { before_ns: step, after_ns: step + 1, ..Record::default() });
        }
        assert_eq!(log.get(0).map(|(number, record)| (number, record.before_ns)), Some((10, 10)));
        let last = JUMPS_MAX as u64 - 1;
        assert_eq!(log.get(last).map(|(number, _)| number), Some(JUMPS_MAX as u64 + 9));
        assert!(log.get(last + 1).is_none());
    }

    #[test]
    fn following_is_one_move_until_it_ends() {
        let mut log = log();
        log.followed(Kind::Child, 0, 5, Name::default());
        log.push(Record { kind: Kind::Advance, before_ns: 5, after_ns: 9, ..Record::default() });
        log.followed(Kind::Child, 9, 12, Name::default());
        assert_eq!(log.get(0).map(|(_, record)| (record.before_ns, record.after_ns)), Some((0, 12)));
        log.end_following();
        log.followed(Kind::Child, 12, 13, Name::default());
        log.end_following();
        log.followed(Kind::Child, 13, 14, Name::default());
        assert_eq!(log.count, 3, "what follows at once goes on");
        log.followed(Kind::Child, 14, 15, Name::new(b"another"));
        assert_eq!(log.count, 3, "a child becomes another program");
        log.end_following();
        log.followed(Kind::Child, 15, 16, Name::new(b"a third"));
        assert_eq!(log.count, 4);
    }

    #[test]
    fn threads_are_numbered_in_their_process() {
        let mut log = log();
        assert_eq!([log.number_thread(0), log.number_thread(0), log.number_thread(3)], [0, 1, 0]);
        log.forget_process(0);
        assert_eq!(log.number_thread(0), 0);
    }
}
