//! Entering and leaving: by hand through [`Sandbox::builder`], and the session below that the attribute uses as well.

use crate::engine::{self, Engine};
use crate::error::Error;
use crate::finding::Finding;
use crate::handle::{self, EngineOf, Handle, Jump};
use crate::journals::{self, Subject};
use crate::option::{Clock, Inherit, Monotonic, Order, Rng};
use crate::queue::{self, Turn};
use crate::recorded::Recorded;
use crate::settings::{Network, Plan, Settings, When};
use crate::{interrupt, real};
use hermetic_abi::{flag, status, Config, Outcome, Slice};
use std::fs;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A sandbox: virtual time, seeded randomness, no network. See [`Sandbox::builder`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Sandbox;

impl Sandbox {
    /// Options to choose, and then [`Builder::enter`].
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// The options of a sandbox; what is not chosen has the default of `docs/options.md`.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub(crate) settings: Settings,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder::default()
    }

    /// What all randomness derives from; a fresh one where none is chosen.
    pub fn seed(mut self, seed: impl Into<i128>) -> Builder {
        self.settings.seed = Some(seed.into());
        self
    }

    /// Where the wall clock stands: an ISO 8601 text, seconds since the epoch, or a `SystemTime`.
    pub fn now(mut self, now: impl Into<When>) -> Builder {
        self.settings.now = Some(now.into());
        self
    }

    /// How far `Instant`s move per reading, in seconds.
    pub fn tick(mut self, seconds: f64) -> Builder {
        self.settings.tick = seconds;
        self
    }

    /// Clocks and waits are virtual, or stay real.
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.settings.clock = clock;
        self
    }

    /// Randomness derives from the seed, or is left alone.
    pub fn rng(mut self, rng: Rng) -> Builder {
        self.settings.rng = rng;
        self
    }

    /// What may be reached; a list of entries adds to loopback and unix sockets.
    pub fn network(mut self, network: impl Into<Network>) -> Builder {
        self.settings.network = network.into();
        self
    }

    /// This machine may be reached by its loopback addresses and names.
    pub fn allow_loopback(mut self, is_allowed: bool) -> Builder {
        self.settings.allow_loopback = is_allowed;
        self
    }

    /// Unix sockets may be reached.
    pub fn allow_unix(mut self, is_allowed: bool) -> Builder {
        self.settings.allow_unix = is_allowed;
        self
    }

    /// A replay that departs from its journal is an error; else it is noted, and goes on with virtual values.
    pub fn strict_replay(mut self, is_strict: bool) -> Builder {
        self.settings.strict_replay = is_strict;
        self
    }

    /// Readings of a clock that does not move before a thread counts as a poll loop; 0 switches the detector off.
    pub fn spin_limit(mut self, readings: u64) -> Builder {
        self.settings.spin_limit = readings;
        self
    }

    /// `Instant`s start from a fixed origin, or go on from their real values.
    pub fn monotonic(mut self, monotonic: Monotonic) -> Builder {
        self.settings.monotonic = monotonic;
        self
    }

    /// A refusal is fatal even where the error was swallowed.
    pub fn network_strict(mut self, is_strict: bool) -> Builder {
        self.settings.network_strict = is_strict;
        self
    }

    /// Directory listings are sorted, shuffled by the seed, or left as they come.
    pub fn order(mut self, order: Order) -> Builder {
        self.settings.order = Some(order);
        self
    }

    /// Whether programs that the sandbox starts take part in it.
    pub fn inherit(mut self, inherit: Inherit) -> Builder {
        self.settings.inherit = inherit;
        self
    }

    /// Writes what stays real into a journal at that path. What is chosen by `now` and `seed` stays as chosen.
    pub fn record(mut self, path: impl Into<PathBuf>) -> Builder {
        self.settings.record = Some(path.into());
        self
    }

    /// Feeds the values of a journal back.
    pub fn replay(mut self, path: impl Into<PathBuf>) -> Builder {
        self.settings.replay = Some(path.into());
        self
    }

    /// Enters. The calling thread, and all that it starts from now on, are inside until the guard is dropped; other threads of
    /// the process that want a sandbox of their own wait for that.
    pub fn enter(self) -> Result<Guard, Error> {
        let mut settings = self.settings;
        if settings.record.is_some() && settings.replay.is_some() {
            return Err(Error::Option("record and replay exclude each other: choose one of them".to_owned()));
        }
        let recorded = settings.replay.as_deref().map(Recorded::read).transpose()?;
        if let Some(recorded) = &recorded {
            recorded.replace(&mut settings)?;
        }
        let seed = settings.seed.map_or_else(fresh_seed, Ok)?;
        let target = settings.record.as_deref().map(journals::scratch_beside).transpose()?;
        let head = target.as_ref().map(|_| journals::head(&settings, seed, &Subject::default())).transpose()?;
        let journal = match (&target, &head, &recorded) {
            (Some(files), Some(head), _) => Journal::Record { scratch: &files.scratch, head },
            (_, _, Some(recorded)) => Journal::Replay { raw: &recorded.raw, pinned: recorded.pinned },
            _ => Journal::None,
        };
        let session = Session::enter(&settings, seed, &journal, Kind::ByHand)?;
        Ok(Guard { session, journal: target, is_told: false, stays: PhantomData })
    }
}

/// As in Python: a seed that nobody chose has 32 bits.
fn fresh_seed() -> Result<i128, Error> {
    let mut bytes = [0; 4];
    real::fill(&mut bytes)?;
    Ok(i128::from(u32::from_ne_bytes(bytes)))
}

/// An entered sandbox, which is left when this is dropped. Stays in its thread.
///
/// # Panics
/// Dropping it panics where something fatal was noticed inside (under `network_strict` a refusal, in a replay a difference) and
/// the thread does not panic already. [`Guard::leave`] returns that as an error instead.
#[derive(Debug)]
#[must_use = "the sandbox is left when the guard is dropped"]
pub struct Guard {
    session: Session,
    journal: Option<journals::Files>,
    is_told: bool,
    stays: PhantomData<*const ()>,
}

/// What there is to tell of a sandbox that was left.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    pub findings: Vec<Finding>,
    pub jumps: Vec<Jump>,
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// Threads other than the first that took part.
    pub threads: u32,
    /// The journal that was written.
    pub journal: Option<PathBuf>,
}

impl Deref for Guard {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.session.handle
    }
}

impl Guard {
    /// Leaves. Fatal findings are an error.
    pub fn leave(mut self) -> Result<Report, Error> {
        self.is_told = true;
        self.end()
    }

    fn end(&mut self) -> Result<Report, Error> {
        let left = self.session.leave();
        let journal = self.journal.take().map(|files| self.keep(files)).transpose()?;
        let left = left?;
        let (fatal, findings): (Vec<Finding>, Vec<Finding>) =
            left.findings.into_iter().partition(|found| found.is_fatal);
        if !fatal.is_empty() {
            return Err(Error::Findings(fatal));
        }
        let elapsed = Duration::from_nanos(u64::try_from(left.outcome.elapsed_ns).unwrap_or(0));
        let jumps = self.session.handle.jumps();
        Ok(Report { findings, jumps, elapsed, threads: left.outcome.threads, journal })
    }

    fn keep(&self, files: journals::Files) -> Result<PathBuf, Error> {
        let kept = self.session.with_journal(|raw| journals::finish(raw, &files.target));
        let _ = fs::remove_file(&files.scratch);
        kept.unwrap_or_else(|| Err(Error::Journal("this sandbox recorded no journal".to_owned())))?;
        Ok(files.target)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        match self.end() {
            Ok(_) => {}
            Err(error) if std::thread::panicking() => eprintln!("hermetic: {error}"),
            Err(error) => panic!("hermetic: {error}"),
        }
    }
}

/// Who enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ByHand,
    /// The attribute: a test may enter a sandbox of its own inside.
    Automatic,
}

/// What happens with journals.
pub(crate) enum Journal<'a> {
    None,
    Record { scratch: &'a Path, head: &'a [u8] },
    Replay { raw: &'a [u8], pinned: u32 },
}

/// An entered sandbox as the engine sees it, with this process's turn.
#[derive(Debug)]
pub(crate) struct Session {
    pub handle: Handle,
    is_left: bool,
    turn: Option<Turn>,
}

/// What was noticed by the end.
pub(crate) struct Left {
    pub outcome: Outcome,
    pub findings: Vec<Finding>,
}

impl Session {
    /// Waits for the turn and enters. On an error nothing has changed.
    pub fn enter(settings: &Settings, seed: i128, journal: &Journal<'_>, kind: Kind) -> Result<Session, Error> {
        let plan = settings.plan()?;
        let engine = engine::api().map_err(|reason| Error::Engine(reason.to_owned()))?;
        // A thread of a sandbox would wait for itself; whether it may enter another one is the engine's decision.
        let turn = if engine.is_inside() { None } else { Some(queue::wait_for_turn()) };
        if kind == Kind::ByHand {
            interrupt::note_running("the program", "");
        }
        let id = enter_engine(engine, settings, &plan, seed, journal, kind)?;
        let has_clock = plan.flags & flag::CLOCK != 0;
        let handle = Handle { engine: EngineOf(engine), id, seed, has_clock };
        handle::push(handle);
        Ok(Session { handle, is_left: false, turn })
    }

    /// Leaves. The turn is kept until the session is dropped, so that findings and the journal can still be asked for.
    pub fn leave(&mut self) -> Result<Left, Error> {
        self.is_left = true;
        handle::remove(self.handle.id);
        let engine = self.handle.engine.0;
        let Some(outcome) = engine.leave(self.handle.id) else {
            let id = self.handle.id;
            return Err(Error::Engine(format!("sandbox {id} is not the innermost one, so it cannot be left now")));
        };
        let findings = if outcome.findings == 0 { Vec::new() } else { self.handle.findings() };
        Ok(Left { outcome, findings })
    }

    /// After the end: the raw journal.
    pub fn with_journal<R>(&self, use_journal: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.handle.engine.0.with_journal(self.handle.id, use_journal)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_left {
            // Its owner panicked between entering and leaving.
            let _ = self.leave();
        }
        drop(self.turn.take());
    }
}

fn enter_engine(
    engine: Engine,
    settings: &Settings,
    plan: &Plan,
    seed: i128,
    journal: &Journal<'_>,
    kind: Kind,
) -> Result<i64, Error> {
    let mut flags = plan.flags;
    if kind == Kind::Automatic {
        flags |= flag::AUTOMATIC;
    }
    let (mut record, mut head, mut replay) = (Slice::ABSENT, Slice::ABSENT, Slice::ABSENT);
    match journal {
        Journal::None => {}
        Journal::Record { scratch, head: text } => {
            flags |= settings.pinned();
            record = Slice::of(scratch.as_os_str().as_encoded_bytes());
            head = Slice::of(text);
        }
        Journal::Replay { raw, pinned } => {
            flags |= pinned;
            replay = Slice::of(raw);
        }
    }
    let seed = seed.to_string();
    let config = Config {
        size: size_of::<Config>() as u32,
        flags,
        seed: Slice::of(seed.as_bytes()),
        now_ns: plan.now_ns,
        tick_ps: plan.tick_ps,
        spin_limit: plan.spin_limit,
        allow: Slice::of(plan.allow.as_bytes()),
        record,
        head,
        replay,
        root: Slice::ABSENT,
    };
    engine.enter(&config).map_err(|(code, text)| match code {
        status::ACTIVE => Error::Active(text),
        status::JOURNAL => Error::Journal(text),
        status::INVALID => Error::Option(text),
        _ => Error::Engine(text),
    })
}

impl Settings {
    /// While recording: what was chosen is not left to the real world.
    pub(crate) fn pinned(&self) -> u32 {
        let clock = if self.now.is_some() { flag::PINNED_CLOCK } else { 0 };
        let seed = if self.seed.is_some() { flag::PINNED_SEED } else { 0 };
        clock | seed
    }
}
