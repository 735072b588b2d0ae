//! The way into a sandbox and out of it, in native code.
//!
//! Two reasons. A finding interrupts the thread with an error at its next Python instruction; if that were the first one of a
//! Python `__exit__`, the sandbox would never be left. And the plain case, no directories or variables and no journal but one
//! that a harness looks after, is entered thousands of times in a suite: it takes no Python code.
//! Every other case is put in order by `hermetic/_sandbox.py`.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::head::Frames;
use crate::host::hushed;
use crate::session::{Journals, Plan, Session};
use crate::{errors, real};

/// A seed that nobody chose has 32 bits: short enough to read out, long enough not to repeat.
const FRESH_SEED_LEN: usize = 4;

static HANDLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ACTIVE: PyOnceLock<Py<PyList>> = PyOnceLock::new();

/// The handles of the sandboxes that are entered now, innermost last.
pub fn active(py: Python<'_>) -> &Bound<'_, PyList> {
    ACTIVE.get_or_init(py, || PyList::empty(py).unbind()).bind(py)
}

/// The handle of the active sandbox, from anywhere in the process; None outside.
#[pyfunction]
pub fn current(py: Python<'_>) -> PyResult<Option<Bound<'_, Handle>>> {
    let active = active(py);
    for index in (0..active.len()).rev() {
        let handle = active.get_item(index)?.cast_into::<Handle>()?;
        let is_suspended = match &handle.try_borrow()?._sandbox {
            Some(door) => door.try_borrow(py)?._is_suspended,
            None => false,
        };
        if !is_suspended {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}

/// What a plain sandbox and its twins are entered with.
#[pyclass(frozen, module = "hermetic._native")]
struct Armed {
    plan: Py<Plan>,
    is_automatic: bool,
    /// Where its journal is written.
    record: Option<Py<PyString>>,
    frames: Frames,
}

/// Base of `hermetic.Sandbox`, which defines `_enter`, `_leave`, `_suspend`, `_resume`, `_conclude` and `_frame`.
#[pyclass(subclass, module = "hermetic._native")]
#[derive(Default)]
pub struct Door {
    armed: Option<Py<Armed>>,
    /// The options, checked (`_sandbox.Given`).
    #[pyo3(get, set)]
    _given: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    _seed: Option<Py<PyAny>>,
    /// Node id of the test.
    #[pyo3(get, set)]
    _test_id: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    _is_suspended: bool,
    /// The settings of this entry: those of the options, or a journal's.
    #[pyo3(get, set)]
    _settings_now: Option<Py<PyAny>>,
    /// What an exit that is not plain has to undo.
    #[pyo3(get, set)]
    _undo: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    _session: Option<Py<Session>>,
    #[pyo3(get, set)]
    _handle: Option<Py<Handle>>,
    #[pyo3(set)]
    _findings: Option<Py<PyAny>>,
    /// The run that is over had no findings; their list is made when it is asked for.
    is_clean: bool,
    /// The run that is over, where its journal can still be kept.
    #[pyo3(get)]
    _recorded: Option<Py<Session>>,
}

#[pymethods]
impl Door {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Door {
        Door::default()
    }

    /// From now on this sandbox is entered with these and its seed, and nothing else.
    #[pyo3(signature = (plan, is_automatic, record))]
    fn _arm(
        &mut self,
        py: Python<'_>,
        plan: Py<Plan>,
        is_automatic: bool,
        record: Option<Py<PyString>>,
    ) -> PyResult<()> {
        self.armed = Some(Py::new(py, Armed { plan, is_automatic, record, frames: Frames::default() })?);
        Ok(())
    }

    /// A sandbox with the same options, which are not checked again. A seed that is given here pins nothing.
    #[pyo3(signature = (seed, test_id))]
    fn _twin<'py>(
        slf: &Bound<'py, Self>,
        seed: Option<Py<PyAny>>,
        test_id: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = slf.get_type();
        let twin = class.call_method1(pyo3::intern!(py, "__new__"), (&class,))?;
        let (own, mut other) = (slf.borrow(), twin.cast::<Door>()?.borrow_mut());
        other.armed = own.armed.as_ref().map(|armed| armed.clone_ref(py));
        other._given = own._given.as_ref().map(|given| given.clone_ref(py));
        other._settings_now = own._settings_now.as_ref().map(|settings| settings.clone_ref(py));
        (other._seed, other._test_id) = (seed, test_id);
        drop(other);
        Ok(twin)
    }

    /// The head of a journal that begins now, where Python enters the sandbox.
    fn _head(slf: &Bound<'_, Self>, plan: &Bound<'_, Plan>, seed: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        head(slf, plan.get(), seed, &Frames::default())
    }

    /// A handle for `session`, which this sandbox is entered with. Filled here and not by arguments, which would take longer to
    /// hand over than all the rest.
    #[pyo3(signature = (session, seed, has_clock, record))]
    fn _make_handle<'py>(
        slf: &Bound<'py, Self>,
        session: &Bound<'py, Session>,
        seed: Option<Py<PyAny>>,
        has_clock: bool,
        record: Option<Py<PyString>>,
    ) -> PyResult<Bound<'py, Handle>> {
        let py = slf.py();
        let class = HANDLE.get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("hermetic._sandbox")?.getattr("SandboxHandle")?.unbind())
        })?;
        let made = class.bind(py).call0()?.cast_into::<Handle>()?;
        let mut handle = made.borrow_mut();
        handle._sandbox = Some(slf.clone().unbind());
        handle._session = Some(session.clone().unbind());
        handle._has_clock = has_clock;
        handle.seed = seed;
        if record.is_some() {
            handle.mode = pyo3::intern!(py, "record").clone().unbind();
        }
        handle.journal_path = record;
        drop(handle);
        Ok(made)
    }

    /// Enters the sandbox; returns its handle.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let armed = {
            let mut own = slf.borrow_mut();
            if own._session.is_some() {
                let message = "this Sandbox is entered already; make another one, or leave it first";
                return Err(errors::new(py, "SandboxActiveError", message));
            }
            (own._findings, own._recorded, own.is_clean) = (None, None, false);
            own.armed.as_ref().map(|armed| armed.clone_ref(py))
        };
        match &armed {
            Some(armed) => Ok(enter_plain(slf, armed.get())?.into_any()),
            None => slf.call_method0(pyo3::intern!(py, "_enter")),
        }
    }

    /// Leaves the sandbox, and raises what it has to say if the body did not raise.
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        hushed(|| {
            if slf.borrow().armed.is_some() && slf.borrow()._session.is_some() {
                leave_plain(slf, error)
            } else {
                slf.call_method1(pyo3::intern!(slf.py(), "_leave"), (kind, error, traceback)).map(drop)
            }
        })
    }

    /// Findings of the run that is over; None before and while one goes on.
    #[getter]
    fn _findings(&mut self, py: Python<'_>) -> Option<Py<PyAny>> {
        if self.is_clean && self._findings.is_none() {
            self._findings = Some(PyList::empty(py).into_any().unbind());
        }
        self._findings.as_ref().map(|findings| findings.clone_ref(py))
    }

    /// Whether `findings` may hold any. A harness asks several times for each test, and nearly always there are none.
    fn _may_have_findings(&self, py: Python<'_>) -> PyResult<bool> {
        if self.is_clean {
            return Ok(false);
        }
        if let Some(findings) = &self._findings {
            return findings.bind(py).is_truthy();
        }
        if self._handle.as_ref().is_some_and(|handle| handle.borrow(py).fs.is_some()) {
            return Ok(true);
        }
        self._session.as_ref().map_or(Ok(true), |session| session.try_borrow(py)?.has_findings(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self._given)?;
        visit.call(&self._settings_now)?;
        visit.call(&self._undo)?;
        visit.call(&self._handle)?;
        visit.call(&self._session)?;
        visit.call(&self._recorded)?;
        visit.call(&self._findings)
    }

    fn __clear__(&mut self) {
        self._given = None;
        self._settings_now = None;
        self._undo = None;
        self._handle = None;
        self._findings = None;
    }

    /// For harnesses: the thread steps out into the real world, until `real_end`, if it is in this sandbox and in none on top of
    /// it. Returns whether it was.
    fn _step_out(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let is_here = match current(slf.py())? {
            Some(handle) => handle.try_borrow()?._sandbox.as_ref().is_some_and(|door| door.is(slf)),
            None => false,
        };
        if is_here {
            real::real_begin();
        }
        Ok(is_here)
    }

    /// For harnesses: the world is real again until `resume`.
    fn suspend(slf: &Bound<'_, Self>) -> PyResult<()> {
        hushed(|| slf.call_method0(pyo3::intern!(slf.py(), "_suspend")).map(drop))
    }

    /// For harnesses: back inside; nothing was lost.
    fn resume(slf: &Bound<'_, Self>) -> PyResult<()> {
        hushed(|| slf.call_method0(pyo3::intern!(slf.py(), "_resume")).map(drop))
    }
}

fn enter_plain<'py>(slf: &Bound<'py, Door>, armed: &Armed) -> PyResult<Bound<'py, Handle>> {
    let py = slf.py();
    let plan = armed.plan.get();
    let chosen = slf.borrow()._seed.as_ref().map(|seed| seed.clone_ref(py));
    let seed = match chosen {
        None if plan.has_seed() => Some(fresh_seed(py)?),
        chosen => chosen,
    };
    let drawn = match &seed {
        Some(seed) => seed.bind(py).clone(),
        None => 0i32.into_pyobject(py)?.into_any(),
    };
    let session = enter_session(slf, armed, &drawn)?;
    let record = armed.record.as_ref().map(|record| record.clone_ref(py));
    let made = Door::_make_handle(slf, &session, seed, plan.has_clock(), record)
        .and_then(|handle| active(py).append(&handle).map(|()| handle));
    let handle = made.inspect_err(|_| {
        // Nothing stays half entered; the error that brought us here is the one to tell.
        drop(session.borrow_mut().leave(py));
    })?;
    let mut own = slf.borrow_mut();
    own._session = Some(session.unbind());
    own._handle = Some(handle.clone().unbind());
    Ok(handle)
}

fn enter_session<'py>(
    slf: &Bound<'py, Door>,
    armed: &Armed,
    seed: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, Session>> {
    let plan = armed.plan.get();
    let Some(record) = &armed.record else { return plan.enter(seed, &Journals::default()) };
    let head = head(slf, plan, seed, &armed.frames)?;
    let record = record.bind(slf.py()).to_cow()?;
    plan.enter(seed, &Journals::recording(&record, &head))
}

fn head(slf: &Bound<'_, Door>, plan: &Plan, seed: &Bound<'_, PyAny>, frames: &Frames) -> PyResult<Vec<u8>> {
    let py = slf.py();
    let test = slf.borrow()._test_id.as_ref().map(|test| test.bind(py).clone());
    frames.head(plan, seed, test.as_ref(), || slf.call_method0(pyo3::intern!(py, "_frame"))?.extract())
}

fn leave_plain(slf: &Bound<'_, Door>, error: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let (session, handle, is_automatic, is_recording) = {
        let mut own = slf.borrow_mut();
        let Some(armed) = &own.armed else { return Ok(()) };
        let (is_automatic, is_recording) = (armed.get().is_automatic, armed.get().record.is_some());
        let handle = own._handle.as_ref().map(|handle| handle.clone_ref(py));
        (own._session.take(), handle, is_automatic, is_recording)
    };
    let Some(session) = session else { return Ok(()) };
    let left = session.borrow_mut(py).leave(py);
    if let Some(handle) = handle {
        forget(active(py), handle.bind(py).as_any())?;
    }
    if is_recording {
        slf.borrow_mut()._recorded = Some(session.clone_ref(py));
    }
    if let Ok((0, _)) = left {
        let mut own = slf.borrow_mut();
        own.is_clean = true;
        // The handle knows its sandbox: as nothing is left to be asked of it, the two go without a collection.
        own._handle = None;
        return Ok(());
    }
    if let (Ok((_, 0)), false) = (&left, is_automatic) {
        return Ok(());
    }
    let failure = left.as_ref().err().map(|error| error.value(py).clone());
    let fatal = left.as_ref().map_or(0, |(_, fatal)| *fatal);
    slf.call_method1(pyo3::intern!(py, "_conclude"), (session, failure, fatal, error)).map(drop)
}

/// Takes a handle off the list of active ones; usually it is the last.
fn forget(active: &Bound<'_, PyList>, handle: &Bound<'_, PyAny>) -> PyResult<()> {
    for index in (0..active.len()).rev() {
        if active.get_item(index)?.is(handle) {
            return active.del_item(index);
        }
    }
    Ok(())
}

fn fresh_seed(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let bytes = real::real_urandom(py, FRESH_SEED_LEN)?;
    let seed = bytes.as_bytes().iter().fold(0u32, |seed, byte| seed << 8 | u32::from(*byte));
    Ok(seed.into_pyobject(py)?.into_any().unbind())
}

/// Base of `hermetic.SandboxHandle`: its values. What it does with them is Python.
#[pyclass(subclass, module = "hermetic._native", get_all, set_all)]
pub struct Handle {
    _sandbox: Option<Py<Door>>,
    _session: Option<Py<Session>>,
    _has_clock: bool,
    _clock: Option<Py<PyAny>>,
    seed: Option<Py<PyAny>>,
    mode: Py<PyString>,
    fs: Option<Py<PyAny>>,
    journal_path: Option<Py<PyString>>,
    _replay_warnings: Option<Py<PyAny>>,
}

#[pymethods]
impl Handle {
    #[new]
    fn new(py: Python<'_>) -> Handle {
        Handle {
            _sandbox: None,
            _session: None,
            _has_clock: false,
            _clock: None,
            seed: None,
            mode: pyo3::intern!(py, "deterministic").clone().unbind(),
            fs: None,
            journal_path: None,
            _replay_warnings: None,
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self._sandbox)?;
        visit.call(&self._session)?;
        visit.call(&self._clock)?;
        visit.call(&self.fs)
    }
}
