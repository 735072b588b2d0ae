//! The way into a sandbox and out of it, in native code.
//!
//! Two reasons. A finding interrupts the thread with an error at its next Python instruction; if that were the first one of a
//! Python `__exit__`, the sandbox would never be left. And the plain case, no journals, directories or variables, is entered
//! thousands of times in a suite: it takes no Python code at all. Every other case is put in order by `hermetic/_sandbox.py`.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::host::hushed;
use crate::session::{Plan, Session};
use crate::{errors, real};

/// A seed that nobody chose has 32 bits: short enough to read out, long enough not to repeat.
const FRESH_SEED_LEN: usize = 4;

static HANDLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ACTIVE: PyOnceLock<Py<PyList>> = PyOnceLock::new();

/// The handles of the sandboxes that are entered now, innermost last.
pub fn active(py: Python<'_>) -> &Bound<'_, PyList> {
    ACTIVE.get_or_init(py, || PyList::empty(py).unbind()).bind(py)
}

/// Base of `hermetic.Sandbox`, which defines `_enter`, `_leave`, `_suspend`, `_resume` and `_conclude`.
#[pyclass(subclass, module = "hermetic._native")]
#[derive(Default)]
pub struct Door {
    /// What a plain sandbox is entered with.
    plan: Option<Py<Plan>>,
    seed: Option<Py<PyAny>>,
    is_automatic: bool,
    #[pyo3(get, set)]
    _session: Option<Py<Session>>,
    #[pyo3(get, set)]
    _handle: Option<Py<PyAny>>,
    /// Findings of the run that is over; None before and while one goes on.
    #[pyo3(get, set)]
    _findings: Option<Py<PyAny>>,
}

#[pymethods]
impl Door {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Door {
        Door::default()
    }

    /// From now on this sandbox is entered with `plan` and `seed` and nothing else.
    fn _arm(&mut self, plan: Py<Plan>, seed: Option<Py<PyAny>>, is_automatic: bool) {
        self.plan = Some(plan);
        self.seed = seed;
        self.is_automatic = is_automatic;
    }

    /// Enters the sandbox; returns its handle.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (plan, seed) = {
            let mut own = slf.borrow_mut();
            if own._session.is_some() {
                let message = "this Sandbox is entered already; make another one, or leave it first";
                return Err(errors::new(py, "SandboxActiveError", message));
            }
            own._findings = None;
            let Some(plan) = &own.plan else {
                drop(own);
                return slf.call_method0(pyo3::intern!(py, "_enter"));
            };
            (plan.clone_ref(py), own.seed.as_ref().map(|seed| seed.clone_ref(py)))
        };
        enter_plain(slf, plan.get(), seed)
    }

    /// Leaves the sandbox, and raises what it has to say if the body did not raise.
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        hushed(|| {
            if slf.borrow().plan.is_some() && slf.borrow()._session.is_some() {
                leave_plain(slf, error)
            } else {
                slf.call_method1(pyo3::intern!(slf.py(), "_leave"), (kind, error, traceback)).map(drop)
            }
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self._handle)?;
        visit.call(&self._session)?;
        visit.call(&self._findings)
    }

    fn __clear__(&mut self) {
        self._handle = None;
        self._findings = None;
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

fn enter_plain<'py>(slf: &Bound<'py, Door>, plan: &Plan, seed: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let seed = match seed {
        None if plan.has_seed() => Some(fresh_seed(py)?),
        chosen => chosen,
    };
    let drawn = match &seed {
        Some(seed) => seed.bind(py).clone(),
        None => 0i32.into_pyobject(py)?.into_any(),
    };
    let session = Bound::new(py, plan.enter(&drawn)?)?;
    let made = handle_class(py).and_then(|class| class.call1((slf, &session, seed, plan.has_clock())));
    let handle = made.and_then(|handle| active(py).append(&handle).map(|()| handle)).inspect_err(|_| {
        // Nothing stays half entered; the error that brought us here is the one to tell.
        drop(session.borrow_mut().leave(py));
    })?;
    let mut own = slf.borrow_mut();
    own._session = Some(session.unbind());
    own._handle = Some(handle.clone().unbind());
    Ok(handle)
}

fn leave_plain(slf: &Bound<'_, Door>, error: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let (session, handle, is_automatic) = {
        let mut own = slf.borrow_mut();
        (own._session.take(), own._handle.as_ref().map(|handle| handle.clone_ref(py)), own.is_automatic)
    };
    let Some(session) = session else { return Ok(()) };
    let left = session.borrow_mut(py).leave(py);
    if let Some(handle) = handle {
        forget(active(py), handle.bind(py))?;
    }
    if let Ok((0, _)) = left {
        let mut own = slf.borrow_mut();
        own._findings = Some(PyList::empty(py).into_any().unbind());
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

fn handle_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let class = HANDLE
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("hermetic._sandbox")?.getattr("SandboxHandle")?.unbind()))?;
    Ok(class.bind(py))
}

/// Base of `hermetic.SandboxHandle`: its values. What it does with them is Python.
#[pyclass(subclass, module = "hermetic._native", get_all, set_all)]
pub struct Handle {
    _sandbox: Py<PyAny>,
    _session: Py<Session>,
    _has_clock: bool,
    _clock: Option<Py<PyAny>>,
    seed: Option<Py<PyAny>>,
    mode: Py<PyString>,
    fs: Option<Py<PyAny>>,
    journal_path: Option<Py<PyAny>>,
    _replay_warnings: Option<Py<PyAny>>,
}

#[pymethods]
impl Handle {
    #[new]
    fn new(
        py: Python<'_>,
        sandbox: Py<PyAny>,
        session: Py<Session>,
        seed: Option<Py<PyAny>>,
        has_clock: bool,
    ) -> Handle {
        Handle {
            _sandbox: sandbox,
            _session: session,
            _has_clock: has_clock,
            _clock: None,
            seed,
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
