//! Steps by `sys.monitoring`, from 3.12 on: lines, jumps, and calls of functions in C that come back.
//!
//! Code that is not counted is switched off place by place, so that it runs at its usual speed.

use core::ffi::c_char;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyAnyMethods;
use std::sync::Mutex;

use super::{counted, step};
use crate::errors;

/// Free for everybody by convention; then those of profilers and optimizers.
const TOOLS: [i32; 4] = [4, 3, 2, 5];
const NAME: &str = "hermetic";

/// The tool that is used now.
static TOOL: Mutex<Option<i32>> = Mutex::new(None);
static DISABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

type Callback = unsafe extern "C" fn(*mut PyObject, *mut *mut PyObject, ffi::Py_ssize_t) -> *mut PyObject;

/// Events and what is called for them. `C_RETURN` only comes where `CALL` does, and only `CALL` can be switched off.
const CALLBACKS: [(&str, Callback); 4] =
    [("LINE", on_place), ("JUMP", on_place), ("CALL", on_call), ("C_RETURN", on_return)];
const ASKED_FOR: [&str; 3] = ["LINE", "JUMP", "CALL"];

pub fn begin(py: Python<'_>) -> PyResult<()> {
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    DISABLE.get_or_try_init(py, || Ok::<_, PyErr>(monitoring.getattr("DISABLE")?.unbind()))?;
    let mut free = None;
    for tool in TOOLS {
        if monitoring.call_method1("get_tool", (tool,))?.is_none() {
            free = Some(tool);
            break;
        }
    }
    let Some(tool) = free else {
        let message =
            "schedule='seeded' counts lines with a tool of sys.monitoring, and the numbers 2 to 5 are all in use: \
                       do without one of those tools, or use schedule='cooperative'";
        return Err(errors::sandbox(py, message));
    };
    monitoring.call_method1("use_tool_id", (tool, NAME))?;
    *TOOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(tool);
    let events = monitoring.getattr("events")?;
    for (event, callback) in CALLBACKS {
        let function = function(py, callback)?;
        monitoring.call_method1("register_callback", (tool, events.getattr(event)?, function))?;
    }
    let mut wanted = 0i32;
    for event in ASKED_FOR {
        wanted |= events.getattr(event)?.extract::<i32>()?;
    }
    monitoring.call_method1("set_events", (tool, wanted))?;
    Ok(())
}

pub fn end(py: Python<'_>) -> PyResult<()> {
    let Some(tool) = TOOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() else { return Ok(()) };
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    monitoring.call_method1("set_events", (tool, 0))?;
    let events = monitoring.getattr("events")?;
    for (event, _) in CALLBACKS {
        monitoring.call_method1("register_callback", (tool, events.getattr(event)?, py.None()))?;
    }
    monitoring.call_method1("free_tool_id", (tool,))?;
    Ok(())
}

/// A Python function over a callback. The definition lives as long as the process, as the interpreter demands.
fn function(py: Python<'_>, callback: Callback) -> PyResult<Bound<'_, PyAny>> {
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"step".as_ptr().cast::<c_char>(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: callback },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: core::ptr::null(),
    }));
    // SAFETY: the lock is held, and the definition is never freed.
    let made = unsafe { ffi::PyCFunction_NewEx(definition, core::ptr::null_mut(), core::ptr::null_mut()) };
    // SAFETY: a new reference, or null with an error set.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// A new reference to `None`.
fn none() -> *mut PyObject {
    // SAFETY: the lock is held in every callback.
    let none = unsafe { ffi::Py_None() };
    // SAFETY: as above.
    unsafe { ffi::Py_INCREF(none) };
    none
}

/// A new reference to what switches an event off at its place.
fn disable() -> *mut PyObject {
    // SAFETY: the lock is held in every callback.
    let py = unsafe { Python::assume_attached() };
    DISABLE.get(py).map_or_else(none, |disable| disable.clone_ref(py).into_ptr())
}

/// Whether the code of an event, its first argument, is counted.
///
/// # Safety
/// The arguments of a callback.
unsafe fn is_counted(arguments: *mut *mut PyObject, count: ffi::Py_ssize_t) -> bool {
    // SAFETY: the caller's promise.
    count > 0 && counted::is_counted(unsafe { *arguments })
}

unsafe extern "C" fn on_place(
    _: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: the interpreter's arguments.
    if !unsafe { is_counted(arguments, count) } {
        return disable();
    }
    step();
    none()
}

unsafe extern "C" fn on_call(_: *mut PyObject, arguments: *mut *mut PyObject, count: ffi::Py_ssize_t) -> *mut PyObject {
    // SAFETY: the interpreter's arguments.
    match unsafe { is_counted(arguments, count) } {
        true => none(),
        false => disable(),
    }
}

unsafe extern "C" fn on_return(
    _: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: the interpreter's arguments.
    if unsafe { is_counted(arguments, count) } {
        step();
    }
    none()
}
