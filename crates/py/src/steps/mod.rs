//! `schedule="seeded"`: the steps of a thread are counted, and where the engine says so it gives the interpreter lock away.
//!
//! A step is a line that is begun, a jump, or a call of a function in C that comes back, in code that may differ between two
//! programs: not the standard library, not the harness, not what an import runs. So a test takes the same steps alone and
//! in a suite, where others have imported for it. After how many steps a thread offers its turn is the engine's to say.
//!
//! From 3.12 on steps are seen through `sys.monitoring` ([`monitored`]), before that through the C hooks of tracers and
//! profilers ([`traced`]). Both leave coverage, debuggers and profilers what they have.

#![allow(unsafe_code)]

mod counted;
mod monitored;
mod traced;

use hermetic_abi::Api;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::{engine, host};

/// What the hooks of the interpreter need; they must not look for it.
static API: OnceLock<&'static Api> = OnceLock::new();
/// Sandboxes that count steps, on top of each other.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Begins to count, for one sandbox more.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    if DEPTH.load(Ordering::Relaxed) == 0 {
        let api = engine::attached().map_err(|text| crate::errors::sandbox(py, text))?;
        API.get_or_init(|| api);
        counted::prepare();
        if py.version_info() >= (3, 12) {
            monitored::begin(py)?;
        } else {
            traced::begin(py)?;
        }
    }
    DEPTH.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Undoes one [`begin`].
pub fn end(py: Python<'_>) -> PyResult<()> {
    if DEPTH.fetch_sub(1, Ordering::Relaxed) > 1 {
        return Ok(());
    }
    if py.version_info() >= (3, 12) {
        monitored::end(py)
    } else {
        traced::end(py);
        Ok(())
    }
}

/// Whether any sandbox counts.
fn is_counting() -> bool {
    DEPTH.load(Ordering::Relaxed) > 0
}

/// The calling thread, which holds the interpreter lock, has taken a step in code that is counted. It may come back much later.
///
/// Nothing here has a destructor: a thread that is not to run any more ends in the middle of it (H6).
fn step() {
    let Some(api) = API.get() else { return };
    // SAFETY: no preconditions.
    if host::is_importing_here() || unsafe { (api.step)() } == 0 {
        return;
    }
    // The turn is offered below and nowhere else, also where the engine recognises the lock that is given away.
    // SAFETY: ended below.
    unsafe { (api.real_begin)() };
    // SAFETY: the lock is held; it is taken again below.
    let state = unsafe { ffi::PyEval_SaveThread() };
    // SAFETY: begun above.
    unsafe { (api.real_end)() };
    // SAFETY: no preconditions.
    unsafe { (api.offer_turn)() };
    // SAFETY: the state that was saved above.
    unsafe { ffi::PyEval_RestoreThread(state) };
}
