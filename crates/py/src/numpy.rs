//! NumPy's global generator (`numpy.random.seed`, `numpy.random.rand`, …): saved, seeded and restored as memory.
//!
//! Only a NumPy that is already imported is touched. The state of the bit generator lies behind its capsule; the waiting
//! Gaussian number lies inside the `RandomState` object, at an offset that is measured once on a private object and
//! believed only if it shows the value that `get_state()` reports. Where anything differs, `get_state`/`set_state` are used.

#![allow(unsafe_code)]

use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_model::twister;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::generator::{in_memory, STATE_LEN};

const WORD: usize = core::mem::size_of::<usize>();
const SAMPLE_SEED: u32 = 1;
/// Number of bytes from the pointer to the bit generator to the end of the waiting Gaussian number.
const GAUSS_LEN: usize = 24;
/// Number of bytes without that pointer: whether a number waits, and which.
const GAUSS_WAITING_LEN: usize = GAUSS_LEN - WORD;

/// Where the pieces lie.
struct Places {
    /// `uint32_t key[624]; int pos;`, as long as the state of `random`.
    state: *mut u8,
    /// `bitgen_t *; int has_gauss; double gauss;` inside the object.
    gauss: *mut u8,
}

/// A saved state.
pub enum State {
    Memory { words: Box<[u8; STATE_LEN]>, gauss: [u8; GAUSS_WAITING_LEN] },
    Public(Py<PyAny>),
}

/// Offset of the Gaussian number inside a `RandomState`, or None where it was not found.
static GAUSS_OFFSET: PyOnceLock<Option<usize>> = PyOnceLock::new();

/// The bit generator that was asked for its state last, which stays alive, and where that lies.
static LAST: Mutex<Option<(Py<PyAny>, usize)>> = Mutex::new(None);

/// `numpy.random.mtrand._rand`, if NumPy's random module is imported.
pub fn global<'py>(modules: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = modules.py();
    let Some(module) = modules.get_item(pyo3::intern!(py, "numpy.random.mtrand"))? else { return Ok(None) };
    Ok(module.getattr(pyo3::intern!(py, "_rand")).ok())
}

pub fn save(rand: &Bound<'_, PyAny>) -> PyResult<State> {
    let Some(places) = find(rand)? else {
        let kwargs = PyDict::new(rand.py());
        kwargs.set_item("legacy", false)?;
        return Ok(State::Public(rand.call_method("get_state", (), Some(&kwargs))?.unbind()));
    };
    let mut words = Box::new([0; STATE_LEN]);
    let mut gauss = [0; GAUSS_WAITING_LEN];
    // SAFETY: `find` has seen the state at this address; the interpreter lock keeps it still.
    unsafe { core::ptr::copy_nonoverlapping(places.state, words.as_mut_ptr(), STATE_LEN) };
    // SAFETY: as above, inside the object.
    unsafe { core::ptr::copy_nonoverlapping(places.gauss, gauss.as_mut_ptr(), gauss.len()) };
    Ok(State::Memory { words, gauss })
}

fn restore(rand: &Bound<'_, PyAny>, state: &State) -> PyResult<()> {
    match state {
        State::Public(state) => rand.call_method1("set_state", (state,)).map(drop),
        State::Memory { words, gauss } => {
            let Some(places) = find(rand)? else {
                // The code under test has put another kind of generator in place: its state is not the saved one.
                return Ok(());
            };
            // SAFETY: as in `save`.
            unsafe { core::ptr::copy_nonoverlapping(words.as_ptr(), places.state, STATE_LEN) };
            // SAFETY: as in `save`.
            unsafe { core::ptr::copy_nonoverlapping(gauss.as_ptr(), places.gauss, gauss.len()) };
            Ok(())
        }
    }
}

/// Exchanges the generator's state with a saved one.
pub fn swap(rand: &Bound<'_, PyAny>, state: &mut State) -> PyResult<()> {
    if let (State::Memory { words, gauss }, Some(places)) = (&mut *state, find(rand)?) {
        // SAFETY: as in `save`; a saved state lies elsewhere.
        unsafe { core::ptr::swap_nonoverlapping(places.state, words.as_mut_ptr(), STATE_LEN) };
        // SAFETY: as above.
        unsafe { core::ptr::swap_nonoverlapping(places.gauss, gauss.as_mut_ptr(), gauss.len()) };
        return Ok(());
    }
    let now = save(rand)?;
    restore(rand, state)?;
    *state = now;
    Ok(())
}

/// Exactly `numpy.random.seed`. NumPy takes seeds of 32 bits, so the sandbox's seed is reduced.
pub fn seed(rand: &Bound<'_, PyAny>, seed: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = seed.py();
    let reduced = match seed.extract::<u64>() {
        Ok(seed) => seed as u32,
        Err(_) => seed.call_method1("__and__", (u32::MAX,))?.extract()?,
    };
    let Some(places) = find(rand)? else {
        return rand.call_method1(pyo3::intern!(py, "seed"), (reduced,)).map(drop);
    };
    // SAFETY: as in `save`.
    unsafe { core::ptr::copy_nonoverlapping(seeded(reduced).as_ptr(), places.state, STATE_LEN) };
    // SAFETY: as in `save`; zeros mean that no number waits.
    unsafe { core::ptr::write_bytes(places.gauss, 0, GAUSS_WAITING_LEN) };
    Ok(())
}

/// The state of a generator that was seeded and has given nothing yet.
fn seeded(seed: u32) -> [u8; STATE_LEN] {
    in_memory(twister::by_number(seed).iter().chain(core::iter::once(&(twister::WORDS as u32))))
}

/// Seeds from the operating system: for a generator that was first imported, and therefore seeded, inside a sandbox.
pub fn seed_afresh(rand: &Bound<'_, PyAny>) -> PyResult<()> {
    rand.call_method0(pyo3::intern!(rand.py(), "seed")).map(drop)
}

fn find(rand: &Bound<'_, PyAny>) -> PyResult<Option<Places>> {
    let py = rand.py();
    let offset = *GAUSS_OFFSET.get_or_init(py, || measure(rand).unwrap_or(None));
    let Some(offset) = offset else { return Ok(None) };
    Ok(state_address(rand)?
        .map(|state| Places { state, gauss: rand.as_ptr().cast::<u8>().wrapping_add(offset + WORD) }))
}

/// The Mersenne Twister state behind the capsule of the bit generator; None for other kinds of generator.
fn state_address(rand: &Bound<'_, PyAny>) -> PyResult<Option<*mut u8>> {
    let py = rand.py();
    let generator = rand.getattr(pyo3::intern!(py, "_bit_generator"))?;
    if let Some((_, address)) = last().as_ref().filter(|(known, _)| known.is(&generator)) {
        return Ok(Some(*address as *mut u8));
    }
    if generator.get_type().name()? != "MT19937" {
        return Ok(None);
    }
    let capsule = generator.getattr(pyo3::intern!(py, "capsule"))?;
    // SAFETY: the object is alive and the name is NUL-terminated; a wrong name gives null and an exception.
    let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"BitGenerator".as_ptr()) };
    if table.is_null() {
        drop(PyErr::take(py));
        return Ok(None);
    }
    // SAFETY: the first field of `bitgen_t` is the pointer to the state, in every NumPy that has this capsule.
    let state = unsafe { table.cast::<*mut c_void>().read() };
    if state.is_null() {
        return Ok(None);
    }
    // The former one may go with this, but not under the lock.
    let _former = last().replace((generator.unbind(), state as usize));
    Ok(Some(state.cast()))
}

fn last() -> MutexGuard<'static, Option<(Py<PyAny>, usize)>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the offset of `bitgen_t *; int has_gauss; double gauss` in a `RandomState` that holds a known Gaussian number.
fn measure(rand: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let py = rand.py();
    let class = rand.get_type();
    let sample = class.call1((SAMPLE_SEED,))?;
    let Some(address) = state_address(&sample)? else { return Ok(None) };
    // SAFETY: the capsule's state of an MT19937 is at least this long in every NumPy.
    let read = || unsafe { address.cast::<[u8; STATE_LEN]>().read_unaligned() };
    if read() != seeded(SAMPLE_SEED) {
        return Ok(None);
    }
    sample.call_method0("standard_normal")?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("legacy", false)?;
    let state = sample.call_method("get_state", (), Some(&kwargs))?;
    let gauss: f64 = state.get_item("gauss")?.extract()?;
    let key: Vec<u32> = state.get_item("state")?.get_item("key")?.call_method0("tolist")?.extract()?;
    let size: usize = class.getattr("__basicsize__")?.extract()?;

    let same = read().chunks_exact(4).zip(&key).all(|(bytes, word)| *bytes == word.to_ne_bytes());
    if !same || key.len() != 624 {
        return Ok(None);
    }
    let start = sample.as_ptr() as usize;
    let mut found = None;
    for offset in (0..size.saturating_sub(GAUSS_LEN)).step_by(WORD) {
        let at = sample.as_ptr().cast::<u8>().wrapping_add(offset);
        // SAFETY: `offset + GAUSS_LEN` lies inside the object.
        let bytes = unsafe { at.cast::<[u8; GAUSS_LEN]>().read_unaligned() };
        let pointer = usize::from_ne_bytes(bytes[..8].try_into().unwrap_or_default());
        let is_inside = (start..start + size).contains(&pointer);
        let has_gauss = bytes[8..12] == 1i32.to_ne_bytes();
        if is_inside && has_gauss && bytes[16..24] == gauss.to_ne_bytes() {
            if found.is_some() {
                return Ok(None);
            }
            found = Some(offset);
        }
    }
    Ok(found)
}
