//! One entered sandbox: what is set aside at entry, exchanged at suspend and resume, and put back at exit.
//!
//! The engine decides everything; this file only keeps CPython's own state (generators, environment, a few module
//! attributes) in step with it, in a cost that does not depend on how many modules are imported.

#![allow(unsafe_code)]

use hermetic_abi::{flag, status, Api, Config, Jump, Outcome, Slice, Text};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt};

use crate::attributes::{self, Attributes};
use crate::environment::{self, Changes, Environment};
use crate::findings::Finding;
use crate::generator::{self, Generator};
use crate::kept_generators::{self, Kept};
use crate::{audit, engine, errors, garbage_collection, host, journal_file, numpy, real, steps};

static GENERATOR: PyOnceLock<Generator> = PyOnceLock::new();

/// What a sandbox is made from, checked and converted once.
#[pyclass(frozen, module = "hermetic._native")]
pub struct Plan {
    flags: u32,
    now_ns: i64,
    tick_ps: u64,
    spin_limit: u64,
    allow: String,
    root: String,
    /// Seed the global `random`.
    random: bool,
    /// Seed NumPy's global generator, if NumPy is imported.
    numpy: bool,
    /// Bring the environment back at exit.
    environment: bool,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (*, flags, now_ns, tick_ps, spin_limit, allow, root, random, numpy, environment))]
    #[expect(clippy::too_many_arguments, reason = "keywords of one constructor, all plain values")]
    fn new(
        flags: u32,
        now_ns: i64,
        tick_ps: u64,
        spin_limit: u64,
        allow: String,
        root: String,
        random: bool,
        numpy: bool,
        environment: bool,
    ) -> Plan {
        Plan { flags, now_ns, tick_ps, spin_limit, allow, root, random, numpy, environment }
    }

    /// Remembers the environment, which the caller may then change, before `Session.enter`.
    fn open(&self, py: Python<'_>) -> PyResult<Session> {
        let environment = if self.environment { Some(Environment::remember(py)?) } else { None };
        Ok(Session { environment, ..Session::default() })
    }
}

impl Plan {
    /// Opens and enters.
    pub fn enter<'py>(&self, seed: &Bound<'py, PyAny>, journals: &Journals<'_>) -> PyResult<Bound<'py, Session>> {
        let session = Bound::new(seed.py(), self.open(seed.py())?)?;
        session.borrow_mut().enter_with(self, seed, journals)?;
        Ok(session)
    }

    pub fn has_clock(&self) -> bool {
        self.flags & flag::CLOCK != 0
    }

    /// Where the wall clock begins, if somebody chose that for a recording.
    pub fn pinned_now_ns(&self) -> Option<i64> {
        (self.flags & flag::PINNED_CLOCK != 0).then_some(self.now_ns)
    }

    /// Whether a sandbox without a seed of its own gets a fresh one.
    pub fn has_seed(&self) -> bool {
        self.random
    }
}

/// Paths and bytes of journals at entry.
#[derive(Default)]
pub struct Journals<'a> {
    record: Option<&'a str>,
    head: Option<&'a [u8]>,
    replay: Option<&'a [u8]>,
}

impl<'a> Journals<'a> {
    pub fn recording(path: &'a str, head: &'a [u8]) -> Journals<'a> {
        Journals { record: Some(path), head: Some(head), replay: None }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Phase {
    #[default]
    Open,
    Inside,
    Suspended,
    Left,
}

/// An entered sandbox.
#[pyclass(module = "hermetic._native")]
#[derive(Default)]
pub struct Session {
    phase: Phase,
    id: i64,
    is_guarded: bool,
    is_counted: bool,
    environment: Option<Environment>,
    /// Changes to the environment made inside, while suspended.
    environment_inside: Changes,
    /// The state of the other world: the outer one while inside, the inner one while suspended.
    random: Option<generator::State>,
    numpy: Option<(Py<PyAny>, numpy::State)>,
    is_numpy_watched: bool,
    /// While recording, the states at entry of generators that modules keep.
    kept: Vec<Kept>,
    /// While replaying, those of the other world.
    replayed: Vec<Kept>,
    attributes: Option<Attributes>,
    outcome: Outcome,
}

#[pymethods]
impl Session {
    /// Enters the sandbox that `plan` describes. Whatever fails, nothing stays half entered.
    #[pyo3(signature = (plan, seed, *, record=None, head=None, replay=None))]
    fn enter(
        &mut self,
        plan: &Bound<'_, Plan>,
        seed: &Bound<'_, PyAny>,
        record: Option<&str>,
        head: Option<&[u8]>,
        replay: Option<&[u8]>,
    ) -> PyResult<()> {
        self.enter_with(plan.get(), seed, &Journals { record, head, replay })
    }

    /// Leaves the sandbox. Returns the number of findings, and of fatal ones among them.
    pub fn leave(&mut self, py: Python<'_>) -> PyResult<(u32, u32)> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        let was_inside = self.phase == Phase::Inside;
        let api = usable(py)?;
        let written = self.write_generators(py);
        self.phase = Phase::Left;
        // SAFETY: `outcome` is writable.
        let code = unsafe { (api.leave)(self.id, &raw mut self.outcome) };
        self.forget_guard();
        let forgotten = self.forget_steps(py);
        let restored = if was_inside { self.restore(py) } else { Ok(()) };
        if code < 0 {
            return Err(errors::sandbox(py, &format!("the engine did not leave sandbox {} (status {code})", self.id)));
        }
        restored.and(forgotten)?;
        garbage_collection::end(py)?;
        written?;
        Ok((self.outcome.findings, self.outcome.fatal))
    }

    /// Undoes what `Plan.open` prepared, if `enter` was never reached.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.phase != Phase::Open {
            return Ok(());
        }
        self.phase = Phase::Left;
        self.environment.as_ref().map_or(Ok(()), |environment| environment.restore(py).map(drop))
    }

    /// The world is as it was outside, until `resume`.
    fn suspend(&mut self, py: Python<'_>) -> PyResult<()> {
        self.require(py, &[Phase::Inside])?;
        // SAFETY: plain values.
        let code = unsafe { (usable(py)?.suspend)(self.id) };
        check(py, code, "suspend")?;
        self.phase = Phase::Suspended;
        self.exchange(py)?;
        if let Some(environment) = &self.environment {
            self.environment_inside = environment.restore(py)?;
        }
        Ok(())
    }

    /// Back inside, with everything as it was left; what the outer environment gained meanwhile stays.
    fn resume(&mut self, py: Python<'_>) -> PyResult<()> {
        self.require(py, &[Phase::Suspended])?;
        if let Some(environment) = &mut self.environment {
            *environment = Environment::remember(py)?;
            environment::apply(py, &std::mem::take(&mut self.environment_inside))?;
        }
        self.exchange(py)?;
        // SAFETY: plain values.
        let code = unsafe { (usable(py)?.resume)(self.id) };
        check(py, code, "resume")?;
        self.phase = Phase::Inside;
        Ok(())
    }

    /// A virtual clock in nanoseconds, without ticking: 0 wall, 1 monotonic, 2 CPU.
    fn clock_now(&self, py: Python<'_>, clock: i32) -> PyResult<i64> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        // SAFETY: plain values.
        Ok(unsafe { (usable(py)?.clock_now)(self.id, clock) })
    }

    /// Moves all clocks on.
    fn clock_advance(&self, py: Python<'_>, ns: i64) -> PyResult<()> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        // SAFETY: plain values.
        let code = unsafe { (usable(py)?.clock_advance)(self.id, ns) };
        check(py, code, "advance the clock of")
    }

    /// Sets the wall clock only.
    fn clock_set(&self, py: Python<'_>, ns: i64) -> PyResult<()> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        // SAFETY: plain values.
        let code = unsafe { (usable(py)?.clock_set)(self.id, ns) };
        check(py, code, "set the clock of")
    }

    /// Adds an entry to the network policy.
    fn allow(&self, py: Python<'_>, entry: &str) -> PyResult<()> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        let mut error = Text::new();
        // SAFETY: the text and the error outlive the call.
        let code = unsafe { (usable(py)?.allow)(self.id, engine::slice(entry.as_bytes()), &raw mut error) };
        if code < 0 {
            return Err(errors::new(py, "OptionError", error.as_str()));
        }
        Ok(())
    }

    /// `size` bytes of the sandbox's own stream number `purpose`.
    fn draw<'py>(&self, py: Python<'py>, purpose: u32, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        let api = usable(py)?;
        PyBytes::new_with(py, size, |buffer| {
            // SAFETY: the buffer is writable for its length.
            let code = unsafe { (api.draw)(self.id, purpose, buffer.as_mut_ptr(), buffer.len()) };
            check(py, code, "draw from")
        })
    }

    /// All findings so far; after `leave`, until the next sandbox is entered.
    fn findings(&self, py: Python<'_>) -> PyResult<Vec<Finding>> {
        let api = usable(py)?;
        let mut found = Vec::new();
        let mut raw = hermetic_abi::Finding::BLANK;
        // SAFETY: `raw` is writable.
        while unsafe { (api.finding)(self.id, found.len() as u32, &raw mut raw) } == status::OK {
            found.push(Finding::from(&raw));
        }
        Ok(found)
    }

    /// The moves of time that are kept, oldest first: wall clock before and after in nanoseconds since the entry, and why. Also
    /// after `leave`, until the next sandbox is entered.
    fn jumps(&self, py: Python<'_>) -> PyResult<Vec<(i64, i64, String)>> {
        let api = usable(py)?;
        let mut moves: Vec<(i64, i64, String)> = Vec::new();
        let mut raw = Jump::BLANK;
        // SAFETY: `raw` is writable.
        while unsafe { (api.jump)(self.id, moves.len() as u32, &raw mut raw) } == status::OK {
            // Other threads may push old moves out of the list meanwhile: one may be missed then, none is told twice.
            moves.push((raw.before_ns, raw.after_ns, raw.why.as_str().to_owned()));
        }
        Ok(moves)
    }

    /// Writes a front end's own bytes into the journal, under a name. Nothing where no journal is recorded.
    fn record_state(&self, py: Python<'_>, name: &str, state: &[u8]) -> PyResult<()> {
        self.require(py, &[Phase::Inside, Phase::Suspended])?;
        // SAFETY: both slices outlive the call. A full disk is told of by the engine.
        unsafe { (usable(py)?.record_state)(self.id, engine::slice(name.as_bytes()), engine::slice(state)) };
        Ok(())
    }

    /// Finishes the journal that was recorded and writes it to `path`, in the form that the name asks for.
    fn keep_journal(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        journal_file::finish_to(py, self.raw_journal(py)?, path)
    }

    /// The raw journal, as recorded so far.
    fn journal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.raw_journal(py)?))
    }

    /// The engine's number for this sandbox; 0 before it is entered.
    #[getter]
    fn id(&self) -> i64 {
        self.id
    }

    #[getter]
    fn events(&self) -> u64 {
        self.outcome.events
    }

    #[getter]
    fn elapsed_ns(&self) -> i64 {
        self.outcome.elapsed_ns
    }

    #[getter]
    fn threads(&self) -> u32 {
        self.outcome.threads
    }

    #[getter]
    fn is_inside(&self) -> bool {
        self.phase == Phase::Inside
    }
}

impl Session {
    /// Whether the engine has noticed anything so far.
    pub fn has_findings(&self, py: Python<'_>) -> PyResult<bool> {
        // SAFETY: null stands for no interest in the finding itself.
        Ok(unsafe { (usable(py)?.finding)(self.id, 0, core::ptr::null_mut()) } == status::OK)
    }

    fn enter_with(&mut self, plan: &Plan, seed: &Bound<'_, PyAny>, journals: &Journals<'_>) -> PyResult<()> {
        let py = seed.py();
        self.require(py, &[Phase::Open])?;
        let (api, modules) = (usable(py)?, modules(py)?);
        let entered = self
            .set_aside(plan, seed, &modules)
            .and_then(|()| self.set_generators(plan, &modules, journals))
            .and_then(|()| self.enter_engine(api, plan, seed, journals));
        if let Err(error) = entered {
            self.phase = Phase::Left;
            // The first error is the one that matters; what cannot be restored after it has no better place to go.
            drop(self.restore(py));
            return Err(error);
        }
        self.phase = Phase::Inside;
        Ok(())
    }

    fn set_aside(&mut self, plan: &Plan, seed: &Bound<'_, PyAny>, modules: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = seed.py();
        if plan.flags & flag::CLOCK != 0 && plan.flags & flag::AUTOMATIC == 0 {
            if let Some(holder) = attributes::clock_holder(modules)? {
                return Err(errors::sandbox(
                    py,
                    &format!(
                        "{holder} holds the clock in this block, so a virtual clock would not be seen: enter the sandbox \
                         outside of it, leave the clock to {holder} with clock='off', or do without {holder}"
                    ),
                ));
            }
        }
        if plan.random {
            let generator = GENERATOR.get_or_try_init(py, || Generator::find(py))?;
            self.random = Some(generator.save(py)?);
            generator.seed(py, seed)?;
        }
        if plan.numpy {
            self.is_numpy_watched = true;
            if let Some(rand) = numpy::global(modules)? {
                let state = numpy::save(&rand)?;
                numpy::seed(&rand, seed)?;
                self.numpy = Some((rand.unbind(), state));
            }
        }
        let has_clock = plan.flags & flag::CLOCK != 0;
        self.attributes = Some(Attributes::enter(modules, has_clock, plan.numpy, plan.now_ns)?);
        Ok(())
    }

    /// What modules keep of generators: remembered for a recording, put in place for a replay.
    fn set_generators(&mut self, plan: &Plan, modules: &Bound<'_, PyDict>, journals: &Journals<'_>) -> PyResult<()> {
        let py = modules.py();
        if !plan.random {
            return Ok(());
        }
        if journals.record.is_some() {
            self.kept = kept_generators::keep_all(py, modules)?;
        }
        if let Some(raw) = journals.replay {
            self.replayed = kept_generators::recorded(py, modules, raw)?;
            self.replayed.iter_mut().try_for_each(|kept| kept.swap(py))?;
        }
        Ok(())
    }

    /// Writes into the journal how the generators began that the block has drawn from.
    fn write_generators(&mut self, py: Python<'_>) -> PyResult<()> {
        for kept in std::mem::take(&mut self.kept) {
            if let Some((name, state)) = kept.if_used(py)? {
                self.record_state(py, &name, &state)?;
            }
        }
        Ok(())
    }

    fn enter_engine(
        &mut self,
        api: &Api,
        plan: &Plan,
        seed: &Bound<'_, PyAny>,
        journals: &Journals<'_>,
    ) -> PyResult<()> {
        let py = seed.py();
        let seed = decimal(seed)?;
        if plan.flags & flag::NETWORK != 0 {
            audit::begin(py)?;
            self.is_guarded = true;
        }
        if plan.flags & flag::SCHEDULE_SEEDED != 0 {
            steps::begin(py).inspect_err(|_| self.forget_guard())?;
            self.is_counted = true;
        }
        if journals.record.is_some() || journals.replay.is_some() {
            host::set_root(&plan.root);
        }
        let config = Config {
            size: core::mem::size_of::<Config>() as u32,
            flags: plan.flags,
            seed: engine::slice(seed.as_bytes()),
            now_ns: plan.now_ns,
            tick_ps: plan.tick_ps,
            spin_limit: plan.spin_limit,
            allow: engine::slice(plan.allow.as_bytes()),
            record: engine::slice_or_absent(journals.record.map(str::as_bytes)),
            head: engine::slice_or_absent(journals.head),
            replay: engine::slice_or_absent(journals.replay),
            root: engine::slice(plan.root.as_bytes()),
        };
        garbage_collection::begin(py)?;
        let mut error = Text::new();
        // SAFETY: everything that the configuration borrows outlives the call.
        let answer = unsafe { (api.enter)(&raw const config, &raw mut error) };
        if answer > 0 {
            self.id = answer;
            return Ok(());
        }
        garbage_collection::end(py)?;
        self.forget_guard();
        self.forget_steps(py)?;
        Err(entry_error(py, answer as i32, error.as_str()))
    }

    fn forget_guard(&mut self) {
        if core::mem::take(&mut self.is_guarded) {
            audit::end();
        }
    }

    fn forget_steps(&mut self, py: Python<'_>) -> PyResult<()> {
        if core::mem::take(&mut self.is_counted) {
            steps::end(py)?;
        }
        Ok(())
    }

    /// Puts the outer world back: the reverse of [`Session::set_aside`], then the environment.
    fn restore(&mut self, py: Python<'_>) -> PyResult<()> {
        self.exchange(py)?;
        let modules = modules(py)?;
        if let Some(attributes) = &self.attributes {
            attributes.forget_inside(&modules, || real::real_clock(hermetic_abi::clock::WALL))?;
        }
        if self.is_numpy_watched && self.numpy.is_none() {
            if let Some(rand) = numpy::global(&modules)? {
                numpy::seed_afresh(&rand)?;
            }
        }
        if let Some(environment) = &self.environment {
            environment.restore(py)?;
        }
        Ok(())
    }

    /// Exchanges the state of this world with that of the other one.
    fn exchange(&mut self, py: Python<'_>) -> PyResult<()> {
        self.replayed.iter_mut().try_for_each(|kept| kept.swap(py))?;
        if let Some(attributes) = &mut self.attributes {
            attributes.swap(py)?;
        }
        if let Some((rand, state)) = &mut self.numpy {
            numpy::swap(rand.bind(py), state)?;
        }
        if let (Some(state), Some(generator)) = (&mut self.random, GENERATOR.get(py)) {
            generator.swap(py, state)?;
        }
        Ok(())
    }

    fn require(&self, py: Python<'_>, phases: &[Phase]) -> PyResult<()> {
        if phases.contains(&self.phase) {
            return Ok(());
        }
        let is = match self.phase {
            Phase::Open => "not entered yet",
            Phase::Inside => "active",
            Phase::Suspended => "suspended",
            Phase::Left => "over",
        };
        Err(errors::sandbox(py, &format!("this sandbox is {is}: the call is not possible now")))
    }

    fn raw_journal(&self, py: Python<'_>) -> PyResult<&'static [u8]> {
        let mut raw = Slice::ABSENT;
        // SAFETY: `raw` is writable.
        let code = unsafe { (usable(py)?.journal)(self.id, &raw mut raw) };
        check(py, code, "read the journal of")?;
        if raw.data.is_null() {
            return Err(errors::sandbox(py, "this sandbox recorded no journal"));
        }
        // SAFETY: the engine keeps these bytes mapped until the next sandbox is entered, and every caller here has copied
        // or written them before it returns to Python.
        Ok(unsafe { core::slice::from_raw_parts(raw.data, raw.len) })
    }
}

/// The attached engine, with CPython's adapter behind it.
fn usable(py: Python<'_>) -> PyResult<&'static Api> {
    host::prepare(py)?;
    engine::attached().map_err(|reason| errors::sandbox(py, reason))
}

/// A seed as text.
pub fn decimal(seed: &Bound<'_, PyAny>) -> PyResult<String> {
    if seed.is_exact_instance_of::<PyInt>() {
        // Nearly always: a test's own seed and a fresh one. Larger ones, and negative ones, have no such number.
        if let Ok(number) = seed.extract::<u64>() {
            return Ok(number.to_string());
        }
    }
    Ok(seed.str()?.to_str()?.to_owned())
}

fn modules(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the interpreter lock is held.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: a borrowed reference to `sys.modules`; a new one is taken at once.
    let modules = unsafe { Bound::from_borrowed_ptr_or_err(py, modules)? };
    modules.cast_into::<PyDict>().map_err(PyErr::from)
}

fn check(py: Python<'_>, code: i32, action: &str) -> PyResult<()> {
    if code >= 0 {
        return Ok(());
    }
    Err(errors::sandbox(py, &format!("cannot {action} this sandbox now (status {code})")))
}

fn entry_error(py: Python<'_>, code: i32, text: &str) -> PyErr {
    let text = if text.is_empty() { "the engine refused the sandbox" } else { text };
    match code {
        status::ACTIVE => errors::new(py, "SandboxActiveError", text),
        status::JOURNAL => errors::new(py, "ReplayMismatch", text),
        _ => errors::sandbox(py, text),
    }
}

/// Whether the global generator's state is copied as memory (tests and `doctor` ask).
#[pyfunction]
pub fn is_generator_direct(py: Python<'_>) -> PyResult<bool> {
    Ok(GENERATOR.get_or_try_init(py, || Generator::find(py))?.is_direct())
}

/// Text of the finding that last interrupted this thread, or "".
#[pyfunction]
pub fn last_interrupt() -> String {
    let Ok(api) = engine::api() else { return String::new() };
    let mut text = Text::new();
    // SAFETY: `text` is writable.
    unsafe { (api.last_interrupt)(&raw mut text) };
    text.as_str().to_owned()
}

/// Why no sandbox can be entered in this process, or None. Attaches the engine if it can.
#[pyfunction]
pub fn problem(py: Python<'_>) -> PyResult<Option<&'static str>> {
    host::prepare(py)?;
    Ok(engine::attached().err())
}

/// What the engine knows of this process, one fact a line.
#[pyfunction]
pub fn describe(py: Python<'_>) -> PyResult<Vec<String>> {
    unsafe extern "C" fn line(text: *const u8, len: usize, data: *mut core::ffi::c_void) {
        // SAFETY: `data` is the vector below, for the time of the call.
        let lines = unsafe { &mut *data.cast::<Vec<String>>() };
        // SAFETY: the engine passes a text of `len` bytes.
        let text = unsafe { core::slice::from_raw_parts(text, len) };
        lines.push(String::from_utf8_lossy(text).into_owned());
    }
    let api = usable(py)?;
    let mut lines: Vec<String> = Vec::new();
    // SAFETY: `lines` outlives the call, and nothing else touches it meanwhile.
    unsafe { (api.describe)(Some(line), (&raw mut lines).cast()) };
    Ok(lines)
}
