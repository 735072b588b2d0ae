//! The way out of a sandbox, and in and out between the phases of a test, in native code.
//!
//! A finding interrupts the thread with an error at its next Python instruction. If that were the first one of a Python
//! `__exit__`, the sandbox would never be left; so these methods are native, and hush interruptions before any Python runs.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::host::hushed;

/// Base of `hermetic.Sandbox`, which defines `_leave`, `_suspend` and `_resume`.
#[pyclass(subclass, frozen, module = "hermetic._native")]
pub struct Door;

#[pymethods]
impl Door {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Door {
        Door
    }

    /// Leaves the sandbox, and raises what it has to say if the body did not raise.
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        hushed(|| slf.call_method1(pyo3::intern!(slf.py(), "_leave"), (kind, error, traceback)).map(drop))
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
