//! The state of the global `random` generator: saved, seeded, compared and restored.
//!
//! The state is 625 words inside a C structure; going through `getstate()` would make 625 Python integers of it at every
//! entry. So it is copied as memory, after one comparison with `getstate()` has shown that it lies where we think.

#![allow(unsafe_code)]

use hermetic_model::twister;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// `int index; uint32_t state[624];` of `RandomObject`.
pub const WORDS: usize = 625;
pub const STATE_LEN: usize = WORDS * 4;
/// `PyObject_HEAD` of a build with an interpreter lock.
const HEADER_LEN: usize = 16;

/// A seed of two words, to try.
const SAMPLE_SEED: u64 = 0x0123_4567_89ab_cdef;

/// Whether the state lies where we think, and seeding makes of it what we think; measured once, on the first generator.
static IS_DIRECT: PyOnceLock<bool> = PyOnceLock::new();

/// `random._inst` and the way to seed it.
pub struct Generator {
    twister: Twister,
    seed: Py<PyAny>,
}

/// Any instance of `random.Random`, and the way to its state.
pub struct Twister {
    instance: Py<PyAny>,
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
        Ok(Generator { twister: Twister::of(&instance), seed: seed.unbind() })
    }

    /// Whether the state is copied as memory.
    pub fn is_direct(&self) -> bool {
        self.twister.is_direct
    }

    pub fn save(&self, py: Python<'_>) -> PyResult<State> {
        self.twister.save(py)
    }

    pub fn swap(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        self.twister.swap(py, state)
    }

    /// Exactly `random.seed(seed)` for an integer.
    pub fn seed(&self, py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        match seed.extract::<u64>() {
            Ok(number) if self.is_direct() => self.twister.write(&seeded(number)),
            _ => self.seed.call1(py, (seed,)).map(drop)?,
        }
        self.twister.set_gauss(py, &py.None())
    }
}

impl Twister {
    pub fn of(instance: &Bound<'_, PyAny>) -> Twister {
        let py = instance.py();
        let mut twister = Twister { instance: instance.clone().unbind(), is_direct: false };
        twister.is_direct = *IS_DIRECT.get_or_init(py, || twister.is_where_expected(py).unwrap_or(false));
        twister
    }

    pub fn save(&self, py: Python<'_>) -> PyResult<State> {
        if !self.is_direct {
            return self.save_public(py);
        }
        let mut words = Box::new([0; STATE_LEN]);
        // SAFETY: `is_where_expected` has seen the state at this address, and the lock keeps it still.
        unsafe { core::ptr::copy_nonoverlapping(self.address(), words.as_mut_ptr(), STATE_LEN) };
        Ok(State { words, gauss: self.gauss(py)? })
    }

    /// Exchanges the generator's state with a saved one.
    pub fn swap(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        if !self.is_direct {
            let now = self.save_public(py)?;
            self.restore_public(py, state)?;
            *state = now;
            return Ok(());
        }
        // SAFETY: as in `save`; a saved state lies elsewhere.
        unsafe { core::ptr::swap_nonoverlapping(self.address(), state.words.as_mut_ptr(), STATE_LEN) };
        let gauss = core::mem::replace(&mut state.gauss, self.gauss(py)?);
        self.set_gauss(py, &gauss)
    }

    pub fn restore(&self, py: Python<'_>, state: &State) -> PyResult<()> {
        if !self.is_direct {
            return self.restore_public(py, state);
        }
        self.write(&state.words);
        self.set_gauss(py, &state.gauss)
    }

    fn gauss(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.instance.getattr(py, pyo3::intern!(py, "gauss_next"))
    }

    fn set_gauss(&self, py: Python<'_>, gauss: &Py<PyAny>) -> PyResult<()> {
        self.instance.setattr(py, pyo3::intern!(py, "gauss_next"), gauss)
    }

    fn address(&self) -> *mut u8 {
        self.instance.as_ptr().cast::<u8>().wrapping_add(HEADER_LEN)
    }

    /// Overwrites the state where it lies.
    fn write(&self, words: &[u8; STATE_LEN]) {
        // SAFETY: as in `save`.
        unsafe { core::ptr::copy_nonoverlapping(words.as_ptr(), self.address(), STATE_LEN) };
    }

    fn is_where_expected(&self, py: Python<'_>) -> PyResult<bool> {
        let class = py.import("_random")?.getattr("Random")?;
        let size: usize = class.getattr("__basicsize__")?.extract()?;
        if size < HEADER_LEN + STATE_LEN {
            return Ok(false);
        }
        let sample = Twister { instance: class.call1((SAMPLE_SEED,))?.unbind(), is_direct: false };
        // SAFETY: each object is at least `size` bytes long, which was compared above.
        let words = [self, &sample].map(|twister| unsafe { twister.address().cast::<[u8; STATE_LEN]>().read() });
        Ok(words == [*self.save_public(py)?.words, seeded(SAMPLE_SEED)])
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
        let ordered = core::iter::once(&numbers[WORDS - 1]).chain(&numbers[..WORDS - 1]);
        Ok(State { words: Box::new(in_memory(ordered)), gauss })
    }

    fn restore_public(&self, py: Python<'_>, state: &State) -> PyResult<()> {
        let mut numbers: Vec<u32> = state.numbers().collect();
        numbers.rotate_left(1);
        let numbers = PyTuple::new(py, numbers)?;
        self.instance.call_method1(py, "setstate", ((3, numbers, &state.gauss),)).map(drop)
    }
}

/// The words of a generator that was seeded with a number and has given nothing yet. `random.seed` takes as many words of a
/// seed as it has.
fn seeded(seed: u64) -> [u8; STATE_LEN] {
    let (low, high) = (seed as u32, (seed >> 32) as u32);
    let state = if high == 0 { twister::by_words(&[low]) } else { twister::by_words(&[low, high]) };
    in_memory(core::iter::once(&(twister::WORDS as u32)).chain(&state))
}

/// The numbers of a state as they lie in memory.
pub fn in_memory<'a>(numbers: impl Iterator<Item = &'a u32>) -> [u8; STATE_LEN] {
    let mut words = [0; STATE_LEN];
    for (slot, number) in words.chunks_exact_mut(4).zip(numbers) {
        slot.copy_from_slice(&number.to_ne_bytes());
    }
    words
}

/// Number of bytes of a written state: the words, and the waiting Gaussian number behind a byte that says whether there is one.
const WRITTEN_LEN: usize = STATE_LEN + 1 + 8;

impl State {
    /// The state as bytes that any machine can read.
    pub fn write(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let gauss: Option<f64> = self.gauss.extract(py)?;
        let mut bytes = Vec::with_capacity(WRITTEN_LEN);
        bytes.extend(self.numbers().flat_map(u32::to_le_bytes));
        bytes.push(u8::from(gauss.is_some()));
        bytes.extend(gauss.unwrap_or(0.0).to_le_bytes());
        Ok(bytes)
    }

    /// Reads what [`State::write`] wrote; None for anything else.
    pub fn read(py: Python<'_>, bytes: &[u8]) -> PyResult<Option<State>> {
        if bytes.len() != WRITTEN_LEN {
            return Ok(None);
        }
        let (numbers, gauss) = bytes.split_at(STATE_LEN);
        let mut words = Box::new([0; STATE_LEN]);
        for (slot, number) in words.chunks_exact_mut(4).zip(numbers.chunks_exact(4)) {
            let number = u32::from_le_bytes([number[0], number[1], number[2], number[3]]);
            slot.copy_from_slice(&number.to_ne_bytes());
        }
        let value = gauss[1..].try_into().map(f64::from_le_bytes).unwrap_or_default();
        let gauss = (gauss[0] != 0).then_some(value).into_pyobject(py)?.unbind();
        let state = State { words, gauss };
        // The index is used as it is by the generator: a damaged one would lead out of the array.
        let is_valid = state.numbers().next() <= Some(WORDS as u32 - 1);
        Ok(is_valid.then_some(state))
    }

    /// Whether nothing was drawn between the two.
    pub fn is_same(&self, py: Python<'_>, other: &State) -> PyResult<bool> {
        Ok(self.words == other.words && self.gauss.bind(py).eq(&other.gauss)?)
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
    }
}
