//! Module attributes that remember a clock or a generator between calls, and would carry it into or out of a sandbox.
//!
//! Each row is set aside at entry and put back at exit, for modules that are loaded; a module first imported inside gets
//! its fresh value at exit. Adding a row is all that a new one needs.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// What an attribute is set to.
#[derive(Clone, Copy, PartialEq)]
enum Fresh {
    /// "Nothing cached": the module makes it anew on its next use.
    Nothing,
    /// The time of the world that begins, in the unit that the module uses (float seconds or integer nanoseconds).
    Now,
}

/// Which subsystem must be on.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Clock,
    Randomness,
}

/// module, attribute, fresh value, subsystem, and whether it is also set after a first import inside.
const ROWS: [(&str, &str, Fresh, Needs, bool); 7] = [
    ("tempfile", "_name_sequence", Fresh::Nothing, Needs::Randomness, true),
    // uuid1 and its relatives keep the last timestamp, and prefer a C function with a memory of its own.
    ("uuid", "_last_timestamp", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_last_timestamp_v6", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_last_timestamp_v7", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_generate_time_safe", Fresh::Nothing, Needs::Clock, false),
    ("uuid", "_UuidCreate", Fresh::Nothing, Needs::Clock, false),
    // LogRecord.relativeCreated counts from here.
    ("logging", "_startTime", Fresh::Now, Needs::Clock, true),
];

static NAMES: PyOnceLock<Vec<(Py<PyString>, Py<PyString>)>> = PyOnceLock::new();

/// Attributes set aside: the module's namespace, the name, and the value of the other world.
pub struct Attributes {
    aside: Vec<(Py<PyDict>, usize, Py<PyAny>)>,
    /// Rows whose module was not loaded at entry.
    absent: Vec<usize>,
}

impl Attributes {
    /// Sets aside what the loaded modules remember. `now_ns` is the virtual time.
    pub fn enter(modules: &Bound<'_, PyDict>, clock: bool, randomness: bool, now_ns: i64) -> PyResult<Attributes> {
        let py = modules.py();
        let names = names(py);
        let mut own = Attributes { aside: Vec::new(), absent: Vec::new() };
        let mut module: Option<Bound<'_, PyAny>> = None;
        for (row, (name, _, fresh, needs, _)) in ROWS.iter().enumerate() {
            if !(if *needs == Needs::Clock { clock } else { randomness }) {
                continue;
            }
            // Rows of one module stand together, so it is looked up once.
            if row == 0 || ROWS[row - 1].0 != *name || ROWS[row - 1].3 != *needs {
                module = modules.get_item(&names[row].0)?;
            }
            let Some(module) = module.as_ref() else {
                own.absent.push(row);
                continue;
            };
            let Ok(module) = module.cast::<PyModule>() else { continue };
            let namespace = module.dict();
            let Some(old) = namespace.get_item(&names[row].1)? else { continue };
            namespace.set_item(&names[row].1, value(py, *fresh, now_ns, &old)?)?;
            own.aside.push((namespace.unbind(), row, old.unbind()));
        }
        Ok(own)
    }

    /// Exchanges what the modules hold with what was set aside: out of the sandbox, or back into it.
    pub fn swap(&mut self, py: Python<'_>) -> PyResult<()> {
        let names = names(py);
        for (namespace, row, other) in &mut self.aside {
            let namespace = namespace.bind(py);
            let name = &names[*row].1;
            if let Some(current) = namespace.get_item(name)? {
                namespace.set_item(name, &*other)?;
                *other = current.unbind();
            }
        }
        Ok(())
    }

    /// After the last swap out: modules that were first imported inside forget the sandbox.
    pub fn forget_inside(&self, modules: &Bound<'_, PyDict>, real_now_ns: impl Fn() -> i64) -> PyResult<()> {
        let py = modules.py();
        let names = names(py);
        for row in &self.absent {
            let (_, _, fresh, _, after) = ROWS[*row];
            if !after {
                continue;
            }
            let Some(module) = modules.get_item(&names[*row].0)? else { continue };
            let Ok(module) = module.cast_into::<PyModule>() else { continue };
            let namespace = module.dict();
            if let Some(old) = namespace.get_item(&names[*row].1)? {
                namespace.set_item(&names[*row].1, value(py, fresh, real_now_ns(), &old)?)?;
            }
        }
        Ok(())
    }
}

/// Tools that replace the clock functions of Python modules: module, the list that is not empty while one is at work, name.
const CLOCK_TOOLS: [(&str, &str, &str); 3] = [
    ("time_machine", "traveller_stack", "time-machine"),
    ("time_machine", "coordinates_stack", "time-machine"),
    ("freezegun.api", "freeze_factories", "freezegun"),
];

/// The tool above us that holds the clock now: what it replaced would hide a virtual clock below.
pub fn clock_holder(modules: &Bound<'_, PyDict>) -> PyResult<Option<&'static str>> {
    let py = modules.py();
    static KEYS: PyOnceLock<Vec<(Py<PyString>, Py<PyString>)>> = PyOnceLock::new();
    let keys = KEYS.get_or_init(py, || {
        let intern = |text: &str| PyString::intern(py, text).unbind();
        CLOCK_TOOLS.iter().map(|(module, list, _)| (intern(module), intern(list))).collect()
    });
    for ((module, list), (_, _, name)) in keys.iter().zip(CLOCK_TOOLS) {
        let Some(module) = modules.get_item(module)? else { continue };
        if module.getattr(list).is_ok_and(|list| list.is_truthy().unwrap_or(false)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn names(py: Python<'_>) -> &[(Py<PyString>, Py<PyString>)] {
    NAMES.get_or_init(py, || {
        let intern = |text: &str| PyString::intern(py, text).unbind();
        ROWS.iter().map(|(module, name, ..)| (intern(module), intern(name))).collect()
    })
}

fn value<'py>(py: Python<'py>, fresh: Fresh, now_ns: i64, old: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match fresh {
        Fresh::Nothing => Ok(py.None().into_bound(py)),
        // Python 3.13 went from seconds to nanoseconds; the type of the old value tells which.
        Fresh::Now if old.is_instance_of::<pyo3::types::PyInt>() => Ok(now_ns.into_pyobject(py)?.into_any()),
        Fresh::Now => Ok((now_ns as f64 / 1e9).into_pyobject(py)?.into_any()),
    }
}
