//! The Python exception classes, as this library raises them. They are defined in `hermetic/_errors.py`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The class `name` of `hermetic._errors`.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get_or_try_init(py, || {
        let module = py.import("hermetic._errors")?;
        Ok::<_, PyErr>(module.dict().unbind())
    })?;
    classes.bind(py).get_item(name)?.ok_or_else(|| pyo3::exceptions::PyAttributeError::new_err(name.to_owned()))
}

/// An instance of `hermetic._errors.<name>` with one text.
pub fn new(py: Python<'_>, name: &str, message: &str) -> PyErr {
    match class(py, name).and_then(|class| class.call1((message,))) {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}

/// `SandboxError(message)`.
pub fn sandbox(py: Python<'_>, message: &str) -> PyErr {
    new(py, "SandboxError", message)
}
