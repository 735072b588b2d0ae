//! Waits and journals: what a recording writes of them, and how a replay is held to it.

use crate::finding::blank;
use crate::host::Host;
use crate::order::{Asked, Order, RecordedWait, NOBODY, OUTSIDE};
use crate::recorder::Recorder;
use crate::sandbox::{lock, write_site, Mode, Sandbox, Tape};
use crate::sites::NATIVE;
use crate::thread::Thread;
use hermetic_abi::{finding, flag, Finding, Text};
use hermetic_journal::{Event, WaitKind, Wake};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::MutexGuard;

/// How the waits of a sandbox pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pace {
    /// They are no part of it.
    Off = 0,
    /// In no time; the seed decides the order.
    Virtual = 1,
    /// In real time, and written down. The seed decides the order all the same.
    Real = 2,
    /// In no time; the journal decides the order.
    Recorded = 3,
}

impl Pace {
    /// The pace of a sandbox whose clocks are answered in this mode, and that follows a recorded order or not.
    pub(crate) fn of(clock: Mode, has_order: bool) -> Pace {
        match clock {
            Mode::Off => Pace::Off,
            Mode::Record => Pace::Real,
            Mode::Replay if has_order => Pace::Recorded,
            Mode::Virtual | Mode::Replay => Pace::Virtual,
        }
    }
}

impl Sandbox {
    /// How waits pass just now.
    #[inline]
    pub fn pace(&self) -> Pace {
        [Pace::Off, Pace::Virtual, Pace::Real, Pace::Recorded][usize::from(self.pace.load(Ordering::Relaxed) & 3)]
    }

    pub(crate) fn set_pace(&self, pace: Pace) {
        self.pace.store(pace as u8, Ordering::Relaxed);
    }

    /// A thread went on before its recorded turn, because the one that was next never could: differences from here on are told,
    /// and are no errors.
    pub fn loosen(&self) {
        self.is_loose.store(true, Ordering::Relaxed);
    }

    /// Tells, at the end, that the recorded order could not be followed to the letter.
    pub(crate) fn note_loose(&self) {
        if self.is_loose.load(Ordering::Relaxed) {
            let mut found = blank(finding::REPLAY_MISMATCH, false);
            let _ = found.message.write_str(
                "a thread went on before its recorded turn, because the one that was next waited for another than when \
                 recorded: the program itself chose otherwise, for example by the order of a set of objects",
            );
            let _ = found.subject.write_str("the order of threads");
            lock(&self.findings).add(&found);
        }
    }

    /// Whether a difference to the journal is an error.
    pub fn is_strict(&self) -> bool {
        self.has(flag::STRICT_REPLAY) && !self.is_loose.load(Ordering::Relaxed)
    }

    /// The replay has left its journal: the seed decides from here on.
    pub(crate) fn leave_order(&self) {
        if self.pace() == Pace::Recorded {
            self.set_pace(Pace::Virtual);
        }
    }

    /// The recorded order of threads. Only for those who hold the table of waits, with their signals blocked.
    pub fn turns(&self) -> MutexGuard<'_, Order> {
        lock(&self.turns)
    }

    /// What a journal knows a wait by that is about to begin. None: no journal cares.
    pub fn ask(&self, thread: &mut Thread, host: &dyn Host, kind: WaitKind, ns: Option<i64>) -> Option<Asked> {
        if !matches!(self.pace(), Pace::Real | Pace::Recorded) {
            return None;
        }
        self.commit(thread, host);
        let site = match &mut *lock(&self.tape) {
            Tape::Recorder(recorder) => recorder.site(host, false).0,
            Tape::Replayer(replayer) => replayer.site(host, false).0,
            Tape::None => NATIVE,
        };
        Some(Asked { kind, site, duration_ns: ns.map_or(-1, |ns| ns.max(0)) })
    }

    /// Counts a call of the thread that might have waited and did not.
    pub fn count_look(&self, thread: &mut Thread) {
        let level = self.level(thread);
        level.looks = level.looks.saturating_add(1);
    }

    /// Writes down which descriptors a call of the thread found ready.
    pub fn record_found(&self, thread: &mut Thread, places: u64) {
        self.record_order(thread, |_, thread| Event::Found { thread, places });
    }

    /// Writes down that a thread has got so many bytes from a pipe or a socket.
    pub fn record_got(&self, thread: &mut Thread, host: &dyn Host, count: u32) {
        self.commit(thread, host);
        let number = self.level(thread).number;
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let site = recorder.site(host, false).0;
            recorder.append(&Event::Got { thread: number, site, count });
        }
    }

    /// Writes down that a wait began.
    pub fn record_wait(&self, thread: &mut Thread, asked: &Asked) {
        let Asked { kind, site, duration_ns } = *asked;
        self.record_order(thread, |_, thread| Event::Wait { thread, site, kind, duration_ns });
    }

    /// Writes down that the thread goes on; `by` is the pedigree of who ended its wait, [`NOBODY`] or [`OUTSIDE`].
    pub fn record_wake(&self, thread: &mut Thread, how: Wake, by: u64) {
        self.record_order(thread, |recorder, thread| {
            let by = if matches!(by, NOBODY | OUTSIDE) { None } else { recorder.thread(by) };
            let by = by.and_then(|by| i32::try_from(by).ok()).unwrap_or(-1);
            Event::Wake { thread, how, by }
        });
    }

    /// Writes down what concerns the order of threads, after the calls of this one that did not wait.
    fn record_order(&self, thread: &mut Thread, event: impl FnOnce(&mut Recorder, u32) -> Event<'static>) {
        let level = self.level(thread);
        let (number, count) = (level.number, core::mem::take(&mut level.looks));
        let Tape::Recorder(recorder) = &mut *lock(&self.tape) else { return };
        if count > 0 {
            recorder.append(&Event::Looks { thread: number, count });
        }
        let event = event(recorder, number);
        recorder.append(&event);
    }

    /// Tells that the threads left the recorded order: the calling one `asked` for a wait, or started a thread (none), that
    /// the journal does not have. `expected` is what it has.
    pub fn report_parting(
        &self,
        thread: &mut Thread,
        host: &dyn Host,
        asked: Option<&Asked>,
        expected: Option<RecordedWait>,
    ) {
        let number = self.level(thread).number;
        let mut found = blank(finding::REPLAY_MISMATCH, self.is_strict());
        let text = &mut found.message;
        // A text of fixed length is cut, and never fails.
        let _ = match asked {
            Some(asked) => write!(text, "the test waited for {}", Limited(asked)),
            None => write!(text, "the test started a thread"),
        };
        write_site(host, &mut found.site);
        if !found.site.as_str().is_empty() {
            let _ = write!(found.message, " at {}", found.site.as_str());
        }
        if number != 0 {
            let _ = write!(found.message, " (thread {number})");
        }
        if asked.is_none() {
            let _ = write!(found.message, "; the journal has no such thread");
        } else {
            self.write_expected(&mut found.message, expected.as_ref());
        }
        // While a thread is being started up to CPython 3.11 has two states for the number of its maker, and would raise the error
        // in the wrong one. So this one is told when the sandbox is left.
        self.finish_parting(found, thread, host, asked.is_some());
    }

    /// Tells that nobody goes on, although the journal has somebody.
    pub fn report_stuck(&self, thread: &mut Thread, host: &dyn Host, expected: &RecordedWait) {
        let mut found = blank(finding::REPLAY_MISMATCH, self.is_strict());
        let _ = write!(found.message, "every thread of the test waits");
        self.write_expected(&mut found.message, Some(expected));
        self.finish_parting(found, thread, host, true);
    }

    fn write_expected(&self, text: &mut Text, expected: Option<&RecordedWait>) {
        let _ = write!(text, "; the journal has next: ");
        if let Tape::Replayer(replayer) = &*lock(&self.tape) {
            let _ = replayer.write_wait(expected, text);
        }
    }

    fn finish_parting(&self, mut found: Finding, thread: &mut Thread, host: &dyn Host, interrupts: bool) {
        let is_strict = found.fatal != 0;
        if is_strict {
            if let Tape::Replayer(replayer) = &mut *lock(&self.tape) {
                replayer.diverge();
            }
            self.leave_order();
        }
        let _ = write!(found.subject, "the order of threads");
        self.report(found, thread, host, is_strict && interrupts);
    }
}

/// A wait in words: what for, and how long at most.
pub(crate) struct Limited<'a>(pub &'a Asked);

impl std::fmt::Display for Limited<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.0.kind {
            WaitKind::Sleep => "a time",
            WaitKind::Poll => "descriptors",
            WaitKind::Lock => "a lock",
            WaitKind::Condition => "a condition",
            WaitKind::Semaphore => "a semaphore",
            WaitKind::Join => "the end of a thread",
            WaitKind::Signal => "a signal",
            WaitKind::Socket => "a socket",
            WaitKind::Other => "something of the kernel",
        };
        match self.0.duration_ns {
            ..0 => write!(out, "{what} without a limit"),
            ns => write!(out, "{what} for up to {:.6} s", ns as f64 / 1e9),
        }
    }
}

/// The end of a wait in words; names of threads come from the journal.
pub(crate) fn write_end(
    recorded: &RecordedWait,
    name: impl Fn(u64) -> Option<u32>,
    out: &mut dyn Write,
) -> std::fmt::Result {
    let Some(end) = recorded.end else { return out.write_str(", which did not end") };
    match (end.how, name(end.by)) {
        (Wake::Turn, _) => Ok(()),
        (Wake::Woken, Some(by)) => write!(out, ", ended by thread {by}"),
        (Wake::Woken, None) => out.write_str(", ended from outside"),
        (Wake::TimedOut, _) => out.write_str(", which timed out"),
        (Wake::Kernel, _) => out.write_str(", which got what it waited for"),
        (Wake::Interrupted, _) => out.write_str(", ended by a signal"),
        (Wake::Deadlock, _) => out.write_str(", which was a deadlock"),
    }
}
