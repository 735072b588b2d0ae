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

/// module, attribute, fresh value, subsystem, and whether it is also set after a first import inside. Behind a colon stands
/// the way to the object of the module that has the attribute.
const ROWS: [(&str, &str, Fresh, Needs, bool); 9] = [
    ("tempfile", "_name_sequence", Fresh::Nothing, Needs::Randomness, true),
    // The names of semaphores come from a generator that is made anew where it belongs to another process.
    ("multiprocessing.synchronize:SemLock._rand", "_rng_pid", Fresh::Nothing, Needs::Randomness, true),
    ("multiprocessing.synchronize:SemLock._rand", "_rng", Fresh::Nothing, Needs::Randomness, true),
    // uuid1 and its relatives keep the last timestamp, and prefer a C function with a memory of its own.
    ("uuid", "_last_timestamp", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_last_timestamp_v6", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_last_timestamp_v7", Fresh::Nothing, Needs::Clock, true),
    ("uuid", "_generate_time_safe", Fresh::Nothing, Needs::Clock, false),
    ("uuid", "_UuidCreate", Fresh::Nothing, Needs::Clock, false),
    // LogRecord.relativeCreated counts from here.
    ("logging", "_startTime", Fresh::Now, Needs::Clock, true),
];

static NAMES: PyOnceLock<Vec<Names>> = PyOnceLock::new();

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
        let mut own = Attributes { aside: Vec::with_capacity(ROWS.len()), absent: Vec::with_capacity(ROWS.len()) };
        let mut search = Search::new(modules, names);
        for (row, (_, _, fresh, needs, _)) in ROWS.iter().enumerate() {
            if !(if *needs == Needs::Clock { clock } else { randomness }) {
                continue;
            }
            let namespace = match search.namespace(row)? {
                Namespace::Found(found) => found,
                Namespace::Absent => {
                    own.absent.push(row);
                    continue;
                }
                Namespace::Other => continue,
            };
            let Some(old) = namespace.get_item(&names[row].attribute)? else { continue };
            namespace.set_item(&names[row].attribute, value(py, *fresh, now_ns, &old)?)?;
            own.aside.push((namespace.clone().unbind(), row, old.unbind()));
        }
        Ok(own)
    }

    /// Exchanges what the modules hold with what was set aside: out of the sandbox, or back into it.
    pub fn swap(&mut self, py: Python<'_>) -> PyResult<()> {
        let names = names(py);
        for (namespace, row, other) in &mut self.aside {
            let namespace = namespace.bind(py);
            let name = &names[*row].attribute;
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
        let mut search = Search::new(modules, names);
        for row in &self.absent {
            let (_, _, fresh, _, after) = ROWS[*row];
            if !after {
                continue;
            }
            let Namespace::Found(namespace) = search.namespace(*row)? else { continue };
            if let Some(old) = namespace.get_item(&names[*row].attribute)? {
                namespace.set_item(&names[*row].attribute, value(py, fresh, real_now_ns(), &old)?)?;
            }
        }
        Ok(())
    }
}

/// Tools that replace the clock functions of Python modules: module, lists of which one is not empty while it is at work, name.
const CLOCK_TOOLS: [(&str, &[&str], &str); 2] = [
    ("time_machine", &["traveller_stack", "coordinates_stack"], "time-machine"),
    ("freezegun.api", &["freeze_factories"], "freezegun"),
];

/// The tool above us that holds the clock now: what it replaced would hide a virtual clock below.
pub fn clock_holder(modules: &Bound<'_, PyDict>) -> PyResult<Option<&'static str>> {
    let py = modules.py();
    static KEYS: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    let keys = KEYS.get_or_init(py, || CLOCK_TOOLS.map(|(module, ..)| PyString::intern(py, module).unbind()).into());
    for (key, (_, lists, name)) in keys.iter().zip(CLOCK_TOOLS) {
        let Some(module) = modules.get_item(key)? else { continue };
        let is_full = |list: &&str| module.getattr(*list).is_ok_and(|list| list.is_truthy().unwrap_or(false));
        if lists.iter().any(is_full) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The words of a row as Python has them.
struct Names {
    module: Py<PyString>,
    /// From the module to the object that has the attribute.
    path: Vec<Py<PyString>>,
    attribute: Py<PyString>,
}

fn names(py: Python<'_>) -> &[Names] {
    NAMES.get_or_init(py, || {
        let intern = |text: &str| PyString::intern(py, text).unbind();
        let rows = ROWS.iter().map(|(owner, attribute, ..)| {
            let (module, path) = owner.split_once(':').unwrap_or((owner, ""));
            let path = path.split('.').filter(|name| !name.is_empty()).map(intern).collect();
            Names { module: intern(module), path, attribute: intern(attribute) }
        });
        rows.collect()
    })
}

/// Looks namespaces up. Rows of one module stand together, so each is looked up once.
struct Search<'a, 'py> {
    modules: &'a Bound<'py, PyDict>,
    names: &'a [Names],
    last: Option<(&'static str, Namespace<'py>)>,
}

impl<'a, 'py> Search<'a, 'py> {
    fn new(modules: &'a Bound<'py, PyDict>, names: &'a [Names]) -> Search<'a, 'py> {
        Search { modules, names, last: None }
    }

    /// The namespace of a row.
    fn namespace(&mut self, row: usize) -> PyResult<&Namespace<'py>> {
        let owner = ROWS[row].0;
        let found = match self.last.take() {
            Some((last, found)) if last == owner => found,
            _ => Namespace::find(self.modules, &self.names[row])?,
        };
        Ok(&self.last.insert((owner, found)).1)
    }
}

/// Where a row's attribute is kept.
enum Namespace<'py> {
    Found(Bound<'py, PyDict>),
    /// The module is not loaded.
    Absent,
    /// The module is not what we know.
    Other,
}

impl<'py> Namespace<'py> {
    fn find(modules: &Bound<'py, PyDict>, names: &Names) -> PyResult<Namespace<'py>> {
        let py = modules.py();
        let Some(mut owner) = modules.get_item(&names.module)? else { return Ok(Namespace::Absent) };
        if names.path.is_empty() {
            return Ok(owner.cast::<PyModule>().map_or(Namespace::Other, |module| Namespace::Found(module.dict())));
        }
        for name in &names.path {
            let Ok(next) = owner.getattr(name) else { return Ok(Namespace::Other) };
            owner = next;
        }
        let found =
            owner.getattr(pyo3::intern!(py, "__dict__")).ok().and_then(|found| found.cast_into::<PyDict>().ok());
        Ok(found.map_or(Namespace::Other, Namespace::Found))
    }
}

fn value<'py>(py: Python<'py>, fresh: Fresh, now_ns: i64, old: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match fresh {
        Fresh::Nothing => Ok(py.None().into_bound(py)),
        // Python 3.13 went from seconds to nanoseconds; the type of the old value tells which.
        Fresh::Now if old.is_instance_of::<pyo3::types::PyInt>() => Ok(now_ns.into_pyobject(py)?.into_any()),
        Fresh::Now => Ok((now_ns as f64 / 1e9).into_pyobject(py)?.into_any()),
    }
}
