//! What can be done inside a sandbox, from anywhere in the process.

use crate::engine::Engine;
use crate::error::Error;
use crate::finding::Finding;
use crate::settings::When;
use hermetic_abi::clock;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// A sandbox that is entered. Copies are free; one that outlives its sandbox is answered with errors and nothing.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    pub(crate) engine: EngineOf,
    pub(crate) id: i64,
    pub(crate) seed: i128,
    pub(crate) has_clock: bool,
}

/// The engine, for structures that are shown.
#[derive(Clone, Copy)]
pub(crate) struct EngineOf(pub Engine);

impl std::fmt::Debug for EngineOf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Engine")
    }
}

/// One move of the wall clock, or a reason why it did not move (then both ends are equal).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jump {
    /// Since the sandbox was entered.
    pub at: Duration,
    pub to: Duration,
    /// For people: `deadline of thread 2`, `advance`, `set`, `followed real time: …`, `not jumped: …`.
    pub why: String,
}

/// The sandboxes of this process, the innermost last.
static ENTERED: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

fn entered() -> std::sync::MutexGuard<'static, Vec<Handle>> {
    ENTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The sandbox that the calling thread is in. None in the real world, also for a thread that is no part of the sandbox.
pub fn current() -> Option<Handle> {
    let handle = entered().last().copied()?;
    handle.engine.0.is_inside().then_some(handle)
}

pub(crate) fn push(handle: Handle) {
    entered().push(handle);
}

pub(crate) fn remove(id: i64) {
    entered().retain(|handle| handle.id != id);
}

impl Handle {
    /// What all randomness derives from.
    pub fn seed(&self) -> i128 {
        self.seed
    }

    /// The virtual wall clock. Does not tick. The real one under `clock = "off"`.
    pub fn now(&self) -> SystemTime {
        let ns = self.engine.0.clock_now(self.id, clock::WALL);
        SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
    }

    /// Moves all clocks on, as a sleep would.
    pub fn advance(&self, duration: Duration) -> Result<(), Error> {
        self.need_clock()?;
        let ns = i64::try_from(duration.as_nanos()).ok();
        if ns.is_some_and(|ns| self.engine.0.clock_advance(self.id, ns)) {
            return Ok(());
        }
        Err(Error::Option(format!(
            "cannot advance by {duration:?}: the virtual clock ends in 2262, or the sandbox is over"
        )))
    }

    /// Sets the wall clock, backwards too. `Instant`s stay.
    pub fn set(&self, when: impl Into<When>) -> Result<(), Error> {
        self.need_clock()?;
        if self.engine.0.clock_set(self.id, when.into().ns()?) {
            return Ok(());
        }
        Err(Error::Engine("this sandbox is over, so its clock cannot be set".to_owned()))
    }

    fn need_clock(&self) -> Result<(), Error> {
        if self.has_clock {
            return Ok(());
        }
        Err(Error::Engine(
            "this sandbox leaves the clock real (clock = \"off\"), so there is no virtual clock to move".to_owned(),
        ))
    }

    /// Adds an entry such as `localhost:5432` to what may be reached.
    pub fn allow_network(&self, entry: &str) -> Result<(), Error> {
        self.engine.0.allow(self.id, entry).map_err(Error::Option)
    }

    /// What the engine noticed so far.
    pub fn findings(&self) -> Vec<Finding> {
        let findings = (0..).map_while(|index| self.engine.0.finding(self.id, index));
        findings.map(|raw| Finding::from(&raw)).collect()
    }

    /// When and why time moved otherwise than by being read, oldest first; the last 1024 moves.
    pub fn jumps(&self) -> Vec<Jump> {
        let duration = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        let jumps = (0..).map_while(|index| self.engine.0.jump(self.id, index));
        jumps
            .map(|raw| Jump {
                at: duration(raw.before_ns),
                to: duration(raw.after_ns),
                why: raw.why.as_str().to_owned(),
            })
            .collect()
    }
}
