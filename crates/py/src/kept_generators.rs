//! Generators that the program made before a recorded block: their state lies in memory, so no call tells of them.
//!
//! They are looked for where modules keep them, because a name leads to the same generator in another process. A recording
//! remembers their states at its beginning and writes down those that were drawn from; a replay puts these in place, and the
//! former ones back at its end. The global generators are seeded instead, elsewhere.
//!
//! Modules hold all kinds of objects: proxies that make what they stand for at any look, and fail where it cannot be made. So
//! looking asks the interpreter about types and dictionaries, and runs no code of the objects'.

#![allow(unsafe_code)]

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use hermetic_journal::{Event, Journal};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyMappingMethods, PyModule, PyString, PyType};

use crate::generator::{self, Twister};
use crate::host;

/// What the name of a generator's state begins with in a journal.
const PREFIX: &str = "generator ";

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
static INVENTORY: Mutex<Option<Inventory>> = Mutex::new(None);

/// The classes whose instances are looked for.
struct Classes {
    random: Py<PyType>,
    /// Draws from the system, and has no state.
    system: Py<PyType>,
    /// The instance behind the functions of module `random`.
    global: Py<PyAny>,
}

/// Who was found so far. Modules are looked at once, when they are new.
#[derive(Default)]
struct Inventory {
    modules: HashSet<usize>,
    module_count: usize,
    found: Vec<Named>,
}

/// A generator and the name that leads to it.
struct Named {
    name: String,
    object: Py<PyAny>,
}

/// A generator whose state was set aside.
pub struct Kept {
    name: String,
    object: Py<PyAny>,
    state: State,
}

/// A state of either family.
enum State {
    Twister(generator::State),
    /// NumPy's own form of it, as JSON.
    Numpy(String),
}

impl Kept {
    /// The name and the state at the beginning, where the block has drawn from the generator.
    pub fn if_used(&self, py: Python<'_>) -> PyResult<Option<(String, Vec<u8>)>> {
        let now = State::of(self.object.bind(py))?;
        let is_same = match (&self.state, &now) {
            (State::Twister(before), State::Twister(now)) => before.is_same(py, now)?,
            (State::Numpy(before), State::Numpy(now)) => before == now,
            _ => false,
        };
        Ok(if is_same { None } else { Some((format!("{PREFIX}{}", self.name), self.state.write(py)?)) })
    }

    /// Exchanges the generator's state with the one that was set aside.
    pub fn swap(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        let now = State::of(object)?;
        self.state.put(object)?;
        self.state = now;
        Ok(())
    }
}

/// All generators that modules keep, with their states. One that does not give its state is none.
pub fn keep_all(py: Python<'_>, modules: &Bound<'_, PyDict>) -> PyResult<Vec<Kept>> {
    with_inventory(py, modules, |found| {
        let kept = found.iter().filter_map(|named| {
            let object = named.object.clone_ref(py);
            let state = State::of(object.bind(py)).ok()?;
            Some(Kept { name: named.name.clone(), object, state })
        });
        Ok(kept.collect())
    })
}

/// Those that a journal tells of, with the recorded states: swapping them puts these in place.
pub fn recorded(py: Python<'_>, modules: &Bound<'_, PyDict>, raw: &[u8]) -> PyResult<Vec<Kept>> {
    let states = states(raw);
    if states.is_empty() {
        return Ok(Vec::new());
    }
    with_inventory(py, modules, |found| {
        let mut kept = Vec::new();
        for (name, bytes) in states {
            let Some(named) = found.iter().find(|named| named.name == name) else { continue };
            let object = named.object.clone_ref(py);
            if let Ok(Some(state)) = State::read(object.bind(py), &bytes) {
                kept.push(Kept { name, object, state });
            }
        }
        Ok(kept)
    })
}

/// Names of generators that a raw journal tells of and no module of this process keeps.
#[pyfunction]
pub fn missing_generators(py: Python<'_>, raw: &[u8]) -> PyResult<Vec<String>> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let here: HashSet<String> = recorded(py, &modules, raw)?.into_iter().map(|kept| kept.name).collect();
    Ok(states(raw).into_iter().map(|(name, _)| name).filter(|name| !here.contains(name)).collect())
}

fn states(raw: &[u8]) -> Vec<(String, Vec<u8>)> {
    let Ok(journal) = Journal::decode_raw(raw) else { return Vec::new() };
    let states = journal.events().filter_map(|event| match event {
        Event::State { name, bytes, .. } => Some((name.strip_prefix(PREFIX)?.to_owned(), bytes.to_vec())),
        _ => None,
    });
    states.collect()
}

fn with_inventory<T>(
    py: Python<'_>,
    modules: &Bound<'_, PyDict>,
    work: impl FnOnce(&[Named]) -> PyResult<T>,
) -> PyResult<T> {
    let classes = CLASSES.get_or_try_init(py, || Classes::find(py))?;
    if NUMPY.get(py).is_none() {
        if let Some(found) = Numpy::find(modules) {
            let _ = NUMPY.set(py, found);
        }
    }
    let mut inventory = INVENTORY.lock().unwrap_or_else(PoisonError::into_inner);
    let inventory = inventory.get_or_insert_with(Inventory::default);
    inventory.look_at_new(modules, classes);
    work(&inventory.found)
}

impl Classes {
    fn find(py: Python<'_>) -> PyResult<Classes> {
        let module = py.import("random")?;
        Ok(Classes {
            random: py.import("_random")?.getattr("Random")?.cast_into::<PyType>()?.unbind(),
            system: module.getattr("SystemRandom")?.cast_into::<PyType>()?.unbind(),
            global: module.getattr("_inst")?.unbind(),
        })
    }
}

impl Inventory {
    fn look_at_new(&mut self, modules: &Bound<'_, PyDict>, classes: &Classes) {
        if modules.len() == self.module_count {
            return;
        }
        self.module_count = modules.len();
        let seen = &mut self.modules;
        // A module that was replaced under its name is another one.
        let is_new = |(name, module): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            name.is_instance_of::<PyString>()
                && module.is_instance_of::<PyModule>()
                && seen.insert(module.as_ptr() as usize)
        };
        // Collected first, in case that a look at one imports another.
        let fresh: Vec<_> = modules.iter().filter(is_new).collect();
        for (name, module) in fresh {
            let (Ok(name), Ok(module)) = (name.cast::<PyString>(), module.cast::<PyModule>()) else { continue };
            self.look_at(&name.to_string_lossy(), module, classes);
        }
    }

    fn look_at(&mut self, module: &str, namespace: &Bound<'_, PyModule>, classes: &Classes) {
        let is_own = is_own_code(namespace);
        // A copy, in case that a look changes the module. A list of its items would be a pair for each name.
        for (name, value) in namespace.dict().copy().into_iter().flatten() {
            let Ok(name) = name.cast::<PyString>() else { continue };
            let path = || format!("{module}.{}", name.to_string_lossy());
            if classes.is_generator(&value) {
                self.add(path(), &value);
            } else if is_own {
                self.look_inside(&path(), &value, module, classes);
            }
        }
    }

    /// One step further, into the project's own classes and objects.
    fn look_inside(&mut self, path: &str, value: &Bound<'_, PyAny>, module: &str, classes: &Classes) {
        let class = value.cast::<PyType>().cloned().unwrap_or_else(|_| value.get_type());
        let is_of_module = plain_attribute(class.as_any(), pyo3::intern!(value.py(), "__module__"))
            .and_then(|name| name.cast_into::<PyString>().ok())
            .is_some_and(|name| name.to_string_lossy() == module);
        if !is_of_module {
            return;
        }
        let Some(namespace) = plain_attribute(value, pyo3::intern!(value.py(), "__dict__")) else { return };
        let Ok(items) = namespace.cast::<PyMapping>().map_err(PyErr::from).and_then(|mapping| mapping.items()) else {
            return;
        };
        for (name, inner) in items.iter().filter_map(|item| item.extract::<(String, Bound<'_, PyAny>)>().ok()) {
            if classes.is_generator(&inner) {
                self.add(format!("{path}.{name}"), &inner);
            }
        }
    }

    /// The first name counts.
    fn add(&mut self, name: String, object: &Bound<'_, PyAny>) {
        if !self.found.iter().any(|named| named.object.is(object)) {
            self.found.push(Named { name, object: object.clone().unbind() });
        }
    }
}

impl Classes {
    fn is_generator(&self, value: &Bound<'_, PyAny>) -> bool {
        let py = value.py();
        if is_of(value, self.random.bind(py)) {
            return !value.is(&self.global) && !is_of(value, self.system.bind(py));
        }
        is_numpy(value)
    }
}

/// Whether an object is of a class or of one below it, by its type alone: `isinstance` would ask the object.
fn is_of(value: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    let own = value.get_type();
    // SAFETY: two types, both alive.
    unsafe { ffi::PyType_IsSubtype(own.as_type_ptr(), class.as_type_ptr()) != 0 }
}

/// An attribute as `object` looks it up, whatever the object's class has in place of that.
fn plain_attribute<'py>(value: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: both are alive; the result is a new reference, or null with an error set.
    let found = unsafe { ffi::PyObject_GenericGetAttr(value.as_ptr(), name.as_ptr()) };
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(value.py(), found) }.ok()
}

/// `numpy.random.Generator` or `RandomState`, but the one behind NumPy's global functions. Only a NumPy that is loaded counts.
fn is_numpy(value: &Bound<'_, PyAny>) -> bool {
    let py = value.py();
    let Some(numpy) = NUMPY.get(py) else { return false };
    (is_of(value, numpy.generator.bind(py)) || is_of(value, numpy.state.bind(py))) && !value.is(&numpy.global)
}

/// NumPy's classes of generators, and the instance behind its global functions.
struct Numpy {
    generator: Py<PyType>,
    state: Py<PyType>,
    global: Py<PyAny>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

impl Numpy {
    /// None where NumPy's random module is not loaded.
    fn find(modules: &Bound<'_, PyDict>) -> Option<Numpy> {
        let py = modules.py();
        let legacy = modules.get_item(pyo3::intern!(py, "numpy.random.mtrand")).ok()??;
        let generator = modules.get_item("numpy.random._generator").ok()??.getattr("Generator").ok()?;
        Some(Numpy {
            generator: generator.cast_into::<PyType>().ok()?.unbind(),
            state: legacy.getattr("RandomState").ok()?.cast_into::<PyType>().ok()?.unbind(),
            global: legacy.getattr("_rand").ok()?.unbind(),
        })
    }
}

/// Whether a module is the project's: neither the standard library's nor an installed one.
fn is_own_code(module: &Bound<'_, PyModule>) -> bool {
    let Ok(file) = module.dict().get_item("__file__").map(|file| file.and_then(|file| file.extract::<String>().ok()))
    else {
        return false;
    };
    file.is_some_and(|file| host::is_project_file(&file))
}

impl State {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<State> {
        let py = object.py();
        if !is_numpy(object) {
            return Ok(State::Twister(Twister::of(object).save(py)?));
        }
        let json = py.import("json")?;
        let kwargs = PyDict::new(py);
        kwargs.set_item("default", py.import("operator")?.getattr("methodcaller")?.call1(("tolist",))?)?;
        let text = json.getattr("dumps")?.call((numpy_state(object)?,), Some(&kwargs))?;
        Ok(State::Numpy(text.extract()?))
    }

    fn put(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        match self {
            State::Twister(state) => Twister::of(object).restore(py, state),
            State::Numpy(text) => {
                let state = py.import("json")?.getattr("loads")?.call1((text,))?;
                if object.hasattr("set_state")? {
                    return object.call_method1("set_state", (state,)).map(drop);
                }
                object.getattr("bit_generator")?.setattr("state", state)
            }
        }
    }

    fn write(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        match self {
            State::Twister(state) => state.write(py),
            State::Numpy(text) => Ok(text.clone().into_bytes()),
        }
    }

    /// A recorded state for this object; None where it is not one of its kind.
    fn read(object: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<Option<State>> {
        if !is_numpy(object) {
            return Ok(generator::State::read(object.py(), bytes)?.map(State::Twister));
        }
        let Ok(text) = core::str::from_utf8(bytes) else { return Ok(None) };
        let state = State::Numpy(text.to_owned());
        // NumPy checks the state as it takes it, and refuses that of another kind of bit generator.
        let before = State::of(object)?;
        let is_accepted = state.put(object).is_ok();
        before.put(object)?;
        Ok(is_accepted.then_some(state))
    }
}

fn numpy_state<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if object.hasattr("get_state")? {
        return object.call_method1("get_state", (false,));
    }
    object.getattr("bit_generator")?.getattr("state")
}
