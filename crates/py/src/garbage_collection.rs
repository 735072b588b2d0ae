//! Garbage collections, which come when they come.
//!
//! What callbacks and finalizers read meanwhile says nothing about the program: whether a collection falls between two of its
//! readings depends on everything that was allocated before. So two callbacks of `gc` tell the engine when one begins and ends
//! (the first and the last of the list, so that other callbacks are inside), from the first sandbox entered to the last left.

use core::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyList, PyTuple};

use crate::real::{chance_begin, chance_end};

/// Sandboxes entered and not left.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
static WATCH: PyOnceLock<Watch> = PyOnceLock::new();

/// `gc.callbacks`, and what is put into it.
struct Watch {
    callbacks: Py<PyList>,
    first: Py<PyCFunction>,
    last: Py<PyCFunction>,
}

/// A sandbox was entered.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    if DEPTH.fetch_add(1, Ordering::Relaxed) != 0 {
        return Ok(());
    }
    let watch = WATCH.get_or_try_init(py, || Watch::new(py))?;
    let callbacks = watch.callbacks.bind(py);
    callbacks.insert(0, &watch.first)?;
    callbacks.append(&watch.last)
}

/// A sandbox was left.
pub fn end(py: Python<'_>) -> PyResult<()> {
    if DEPTH.fetch_sub(1, Ordering::Relaxed) != 1 {
        return Ok(());
    }
    let Some(watch) = WATCH.get(py) else { return Ok(()) };
    let callbacks = watch.callbacks.bind(py);
    // From the end, where the last is as a rule; the program may have rearranged the list, or emptied it.
    let mut left = 2;
    for index in (0..callbacks.len()).rev() {
        let is_own =
            callbacks.get_item(index).is_ok_and(|callback| callback.is(&watch.last) || callback.is(&watch.first));
        if is_own {
            callbacks.del_item(index)?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    Ok(())
}

impl Watch {
    fn new(py: Python<'_>) -> PyResult<Watch> {
        Ok(Watch {
            callbacks: py.import("gc")?.getattr("callbacks")?.cast_into::<PyList>()?.unbind(),
            first: callback(py, "start", chance_begin)?,
            last: callback(py, "stop", chance_end)?,
        })
    }
}

/// A callback of `gc` that does something in one of the two phases.
fn callback(py: Python<'_>, phase: &'static str, work: fn()) -> PyResult<Py<PyCFunction>> {
    let called = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        if arguments.get_item(0)?.eq(phase)? {
            work();
        }
        Ok(())
    };
    Ok(PyCFunction::new_closure(py, Some(c"hermetic_collection"), None, called)?.unbind())
}
