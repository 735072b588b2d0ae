//! The state of the global `random` generator: saved, seeded, compared and restored.
//!
//! The state is 625 words inside a C structure; going through `getstate()` would make 625 Python integers of it at every
//! entry. So it is copied as memory, after one comparison with `getstate()` has shown that it lies where we think.

#![allow(unsafe_code)]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// `int index; uint32_t state[624];` of `RandomObject`.
pub const WORDS: usize = 625;
pub const STATE_LEN: usize = WORDS * 4;
/// `PyObject_HEAD` of a build with an interpreter lock.
const HEADER_LEN: usize = 16;

/// `random._inst` and the way to its state.
pub struct Generator {
    instance: Py<PyAny>,
    seed: Py<PyAny>,
    is_direct: bool,
}

/// A saved state. `words` begins with the index, as the structure does.
pub struct State {
    words: Box<[u8; STATE_LEN]>,
    gauss: Py<PyAny>,
}

impl Generator {
    /// Finds the generator behind the functions of module `random`, which is imported if need be.
    pub fn find(py: Python<'_>) -> PyResult<Generator> {
        let instance = py.import("random")?.getattr("_inst")?;
        let base = py.import("_random")?.getattr("Random")?;
        let seed = base.getattr("seed")?.call_method1("__get__", (&instance,))?;
        let mut generator = Generator { instance: instance.unbind(), seed: seed.unbind(), is_direct: true };
        generator.is_direct = generator.is_where_expected(py).unwrap_or(false);
        Ok(generator)
    }

    /// Whether the state is copied as memory.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    pub fn save(&self, py: Python<'_>) -> PyResult<State> {
        if !self.is_direct {
            return self.save_public(py);
        }
        let mut words = Box::new([0; STATE_LEN]);
        // SAFETY: `is_where_expected` has seen the state at this address, and the lock keeps it still.
        unsafe { core::ptr::copy_nonoverlapping(self.address(), words.as_mut_ptr(), STATE_LEN) };
        Ok(State { words, gauss: self.instance.getattr(py, "gauss_next")? })
    }

    pub fn restore(&self, py: Python<'_>, state: &State) -> PyResult<()> {
        if !self.is_direct {
            return self.restore_public(py, state);
        }
        // SAFETY: as in `save`.
        unsafe { core::ptr::copy_nonoverlapping(state.words.as_ptr(), self.address(), STATE_LEN) };
        self.instance.setattr(py, "gauss_next", &state.gauss)
    }

    /// Exactly `random.seed(seed)` for an integer.
    pub fn seed(&self, py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        self.seed.call1(py, (seed,))?;
        self.instance.setattr(py, "gauss_next", py.None())
    }

    fn address(&self) -> *mut u8 {
        self.instance.as_ptr().cast::<u8>().wrapping_add(HEADER_LEN)
    }

    fn is_where_expected(&self, py: Python<'_>) -> PyResult<bool> {
        let size: usize = py.import("_random")?.getattr("Random")?.getattr("__basicsize__")?.extract()?;
        if size < HEADER_LEN + STATE_LEN {
            return Ok(false);
        }
        let public = self.save_public(py)?;
        let mut words = [0u8; STATE_LEN];
        // SAFETY: the object is at least `size` bytes long, which was compared above.
        unsafe { core::ptr::copy_nonoverlapping(self.address(), words.as_mut_ptr(), STATE_LEN) };
        Ok(*public.words == words)
    }

    fn save_public(&self, py: Python<'_>) -> PyResult<State> {
        let state = self.instance.call_method0(py, "getstate")?;
        let (_, numbers, gauss): (u32, Vec<u32>, Py<PyAny>) = state.extract(py)?;
        if numbers.len() != WORDS {
            return Err(PyValueError::new_err(format!(
                "random.getstate() gave {} numbers, not {WORDS}",
                numbers.len()
            )));
        }
        // The tuple ends with the index, the structure begins with it.
        let mut words = Box::new([0; STATE_LEN]);
        let ordered = core::iter::once(&numbers[WORDS - 1]).chain(&numbers[..WORDS - 1]);
        for (slot, number) in words.chunks_exact_mut(4).zip(ordered) {
            slot.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(State { words, gauss })
    }

    fn restore_public(&self, py: Python<'_>, state: &State) -> PyResult<()> {
        let mut numbers: Vec<u32> = state.numbers().collect();
        numbers.rotate_left(1);
        let numbers = PyTuple::new(py, numbers)?;
        self.instance.call_method1(py, "setstate", ((3, numbers, &state.gauss),)).map(drop)
    }
}

impl State {
    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
    }
}
