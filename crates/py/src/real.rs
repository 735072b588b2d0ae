//! The door to the real world: answers that no sandbox changes.

#![allow(unsafe_code)]

use pyo3::exceptions::{PyOSError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::engine;

/// Largest request of [`real_urandom`], as in `os.urandom` of a 32-bit size.
const ENTROPY_LEN_MAX: usize = 1 << 30;

fn libc_clock(clock: i32) -> i64 {
    let id = match clock {
        hermetic_abi::clock::WALL => libc::CLOCK_REALTIME,
        hermetic_abi::clock::CPU => libc::CLOCK_PROCESS_CPUTIME_ID,
        _ => libc::CLOCK_MONOTONIC,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A real clock in nanoseconds: 0 wall, 1 monotonic, 2 CPU.
#[pyfunction]
pub fn real_clock(clock: i32) -> i64 {
    match engine::api() {
        // SAFETY: plain values in and out.
        Ok(api) => unsafe { (api.real_clock)(clock) },
        // Without an engine nothing is virtual.
        Err(_) => libc_clock(clock),
    }
}

/// Seconds since the Unix epoch.
#[pyfunction]
pub fn real_time() -> f64 {
    real_clock(hermetic_abi::clock::WALL) as f64 / 1e9
}

/// Seconds of the monotonic clock.
#[pyfunction]
pub fn real_monotonic() -> f64 {
    real_clock(hermetic_abi::clock::MONOTONIC) as f64 / 1e9
}

/// Sleeps for real. Other Python threads run meanwhile.
#[pyfunction]
pub fn real_sleep(py: Python<'_>, seconds: f64) -> PyResult<()> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("cannot sleep for NaN seconds: a number >= 0 is needed"));
    }
    if seconds < 0.0 {
        return Err(PyValueError::new_err(format!("cannot sleep for {seconds} seconds: a number >= 0 is needed")));
    }
    if seconds > 9e9 {
        return Err(PyOverflowError::new_err(format!("cannot sleep for {seconds} seconds: at most 9e9 are possible")));
    }
    let ns = (seconds * 1e9) as i64;
    match engine::api() {
        // SAFETY: plain values; the interpreter lock is released around the wait.
        Ok(api) => py.detach(|| unsafe { (api.real_sleep)(ns) }),
        Err(_) => py.detach(|| std::thread::sleep(std::time::Duration::from_nanos(ns as u64))),
    }
    Ok(())
}

/// Real entropy.
#[pyfunction]
pub fn real_urandom(py: Python<'_>, size: usize) -> PyResult<Bound<'_, PyBytes>> {
    if size > ENTROPY_LEN_MAX {
        return Err(PyOverflowError::new_err(format!(
            "{size} bytes of entropy: at most {ENTROPY_LEN_MAX} are possible"
        )));
    }
    PyBytes::new_with(py, size, |buffer| {
        let status = match engine::api() {
            // SAFETY: the buffer is writable for its length.
            Ok(api) => unsafe { (api.real_entropy)(buffer.as_mut_ptr(), buffer.len()) },
            Err(_) => libc_entropy(buffer),
        };
        if status < 0 {
            return Err(PyOSError::new_err("the system gave no entropy"));
        }
        Ok(())
    })
}

fn libc_entropy(buffer: &mut [u8]) -> i32 {
    for chunk in buffer.chunks_mut(256) {
        // SAFETY: the chunk is writable for its length, which is within the limit of getentropy.
        if unsafe { libc::getentropy(chunk.as_mut_ptr().cast(), chunk.len()) } != 0 {
            return -1;
        }
    }
    0
}

/// Everything that this thread does until [`real_end`] is real. Nests.
#[pyfunction]
pub fn real_begin() {
    if let Ok(api) = engine::api() {
        // SAFETY: no arguments.
        unsafe { (api.real_begin)() };
    }
}

/// Ends what the matching [`real_begin`] began.
#[pyfunction]
pub fn real_end() {
    if let Ok(api) = engine::api() {
        // SAFETY: no arguments.
        unsafe { (api.real_end)() };
    }
}

/// What this thread does until [`chance_end`] is no part of the program's course.
pub fn chance_begin() {
    if let Ok(api) = engine::api() {
        // SAFETY: the function takes nothing and may be called at any time.
        unsafe { (api.chance_begin)() }
    }
}

/// Ends what [`chance_begin`] began.
pub fn chance_end() {
    if let Ok(api) = engine::api() {
        // SAFETY: as above.
        unsafe { (api.chance_end)() }
    }
}
