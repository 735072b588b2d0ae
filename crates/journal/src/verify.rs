//! What a journal must keep to beyond its encoding: names are defined before they are used, and once.
//!
//! Decoding checks bytes, lengths and sums. This checks the story they tell, and lists what is wrong with it.

use std::collections::HashSet;
use std::fmt;

use crate::event::Event;
use crate::limits::PROBLEMS_MAX;
use crate::Journal;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Number of the event, from 0.
    pub index: u64,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "event {}: {}", self.index, self.what)
    }
}

/// The problems of a decoded journal, at most [`PROBLEMS_MAX`]; none for every journal that the engine wrote.
///
/// ```
/// use hermetic_journal::{verify, Encoder, Event, Journal};
/// let mut raw = Vec::new();
/// let mut encoder = Encoder::start(&mut raw, b"{}").unwrap();
/// encoder.append(&mut raw, &Event::ThreadEnd { thread: 3 }).unwrap();
/// let problems = verify(&Journal::decode(&raw).unwrap());
/// assert_eq!(problems[0].to_string(), "event 0: thread 3 never started");
/// ```
pub fn verify(journal: &Journal) -> Vec<Problem> {
    let mut checker = Checker::default();
    checker.live.insert(0);
    for (index, event) in journal.events().enumerate() {
        checker.check(index as u64, &event);
        if checker.problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    checker.problems
}

#[derive(Default)]
struct Checker {
    sites: HashSet<u32>,
    live: HashSet<u32>,
    ended: HashSet<u32>,
    problems: Vec<Problem>,
}

impl Checker {
    fn check(&mut self, index: u64, event: &Event<'_>) {
        let mut report = |what: String| self.problems.push(Problem { index, what });
        match *event {
            Event::Site { id: 0, .. } => report("call site 0 means unknown and cannot be described".to_string()),
            Event::Site { id, .. } if !self.sites.insert(id) => report(format!("call site {id} is described twice")),
            Event::ThreadStart { thread, parent, .. } => {
                if parent != thread && !self.live.contains(&parent) && !self.ended.contains(&parent) {
                    report(format!("thread {thread} has the parent {parent}, which never started"));
                }
                let is_first = thread == 0 && index == 0;
                if self.ended.contains(&thread) || (!self.live.insert(thread) && !is_first) {
                    report(format!("thread {thread} starts twice"));
                }
                return;
            }
            _ => {}
        }
        if let Some(site) = event.site().filter(|site| *site != 0 && !self.sites.contains(site)) {
            report(format!("call site {site} is used before it is described"));
        }
        if let Event::Wake { by, .. } = *event {
            if u32::try_from(by).is_ok_and(|by| !self.live.contains(&by) && !self.ended.contains(&by)) {
                report(format!("a thread was woken by thread {by}, which never started"));
            }
        }
        let Some(thread) = event.thread() else { return };
        if self.ended.contains(&thread) {
            report(format!("thread {thread} goes on after its end"));
        } else if !self.live.contains(&thread) {
            report(format!("thread {thread} never started"));
        } else if matches!(event, Event::ThreadEnd { .. }) {
            self.live.remove(&thread);
            self.ended.insert(thread);
        }
    }
}
