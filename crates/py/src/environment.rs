//! The environment: remembered at entry, and brought back at exit by setting only what differs.
//!
//! Two copies exist in a CPython process, `os.environ` and libc's `environ`; either can be changed without the other
//! (`os.putenv`, C libraries), so both are compared and both are restored.

#![allow(unsafe_code)]

use core::ffi::{c_char, CStr};
use std::ffi::CString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

extern "C" {
    static environ: *const *const c_char;
}

static DATA: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// `os.environ._data`: bytes to bytes.
fn data(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    let data = DATA.get_or_try_init(py, || {
        let data = py.import("os")?.getattr("environ")?.getattr("_data")?;
        Ok::<_, PyErr>(data.cast_into::<PyDict>()?.unbind())
    })?;
    Ok(data.bind(py))
}

/// libc's side: the pointers, and the texts behind them.
#[derive(Clone, Default)]
struct Native {
    /// Each with the end of its text, which begins where the one before ends.
    entries: Vec<(*const c_char, usize)>,
    text: Vec<u8>,
}

// SAFETY: the pointers are compared, never followed, after the moment in which they were read.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    /// The entries of `environ`, in order.
    fn each() -> impl Iterator<Item = *const c_char> {
        // SAFETY: `environ` is libc's variable; reading it while the interpreter lock is held races only with C threads that
        // change the environment, which POSIX forbids.
        let mut slot = unsafe { environ };
        core::iter::from_fn(move || {
            if slot.is_null() {
                return None;
            }
            // SAFETY: the array ends with a null pointer, which has not been passed.
            let entry = unsafe { slot.read() };
            slot = slot.wrapping_add(1);
            (!entry.is_null()).then_some(entry)
        })
    }

    /// Whether `environ` holds these very pointers. libc makes a new string for a new value and never writes into an old one.
    fn is_current(&self) -> bool {
        Native::each().eq(self.entries.iter().map(|(entry, _)| *entry))
    }

    /// Whether `environ` says the same in the same order. Only strings that are new are looked at.
    fn is_equal(&self) -> bool {
        // SAFETY: entries of `environ` are NUL-terminated.
        let is_same = |(now, (entry, text))| now == entry || unsafe { CStr::from_ptr(now) }.to_bytes() == text;
        Native::each().count() == self.entries.len() && Native::each().zip(self.each_with_text()).all(is_same)
    }

    fn read() -> Native {
        let mut own = Native::default();
        for entry in Native::each() {
            // SAFETY: as above.
            own.text.extend_from_slice(unsafe { CStr::from_ptr(entry) }.to_bytes());
            own.entries.push((entry, own.text.len()));
        }
        own
    }

    fn each_with_text(&self) -> impl Iterator<Item = (*const c_char, &[u8])> {
        let mut start = 0;
        self.entries.iter().map(move |&(entry, end)| (entry, &self.text[core::mem::replace(&mut start, end)..end]))
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.each_with_text().map(|(_, text)| text)
    }
}

/// Both sides at one moment. While libc's pointers are the same, neither side has changed: `os.environ` always calls libc.
struct Memory {
    /// Readings that say the same one after the other share it.
    number: u64,
    python: Py<PyDict>,
    native: Native,
}

/// The last reading: most entries and exits find it unchanged, and cost one comparison of pointers.
static LAST: std::sync::Mutex<Option<Arc<Memory>>> = std::sync::Mutex::new(None);

/// The environment at one moment.
pub struct Environment(Arc<Memory>);

/// What happened to single variables: name, and the value or None where it was removed.
pub type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl Environment {
    pub fn remember(py: Python<'_>) -> PyResult<Environment> {
        let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.native.is_current()) {
            return Ok(Environment(known.clone()));
        }
        let number = match last.as_ref() {
            Some(before) if before.native.is_equal() => before.number,
            before => before.map_or(0, |before| before.number + 1),
        };
        let fresh = Arc::new(Memory { number, python: data(py)?.copy()?.unbind(), native: Native::read() });
        *last = Some(fresh.clone());
        Ok(Environment(fresh))
    }

    /// A number that stays the same for as long as the environment does.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Brings the remembered environment back. Returns what had to be undone, as [`apply`] takes it.
    pub fn restore(&self, py: Python<'_>) -> PyResult<Changes> {
        if self.0.native.is_current() {
            return Ok(Changes::new());
        }
        let (undone, back) = differences(self.0.python.bind(py), data(py)?)?;
        apply(py, &back)?;
        self.restore_native();
        Ok(undone)
    }

    /// What was changed behind the back of `os.environ` is put back as well.
    fn restore_native(&self) {
        let before = &self.0.native;
        if before.is_equal() {
            return;
        }
        let now = Native::read();
        for entry in now.texts() {
            let (name, _) = split(entry);
            if !before.texts().any(|old| split(old).0 == name) {
                unset(name);
            }
        }
        for old in before.texts() {
            if !now.texts().any(|entry| entry == old) {
                let (name, value) = split(old);
                set(name, value);
            }
        }
    }
}

/// Sets and removes variables on both sides.
pub fn apply(py: Python<'_>, changes: &Changes) -> PyResult<()> {
    let own = data(py)?;
    for (name, value) in changes {
        match value {
            Some(value) => {
                set(name, value);
                own.set_item(PyBytes::new(py, name), PyBytes::new(py, value))?;
            }
            None => {
                unset(name);
                own.del_item(PyBytes::new(py, name))?;
            }
        }
    }
    Ok(())
}

/// What turns `before` into `now`, and what turns it back.
fn differences(before: &Bound<'_, PyDict>, now: &Bound<'_, PyDict>) -> PyResult<(Changes, Changes)> {
    let (mut there, mut back) = (Changes::new(), Changes::new());
    let mut kept = 0;
    for (name, value) in now.iter() {
        let old = before.get_item(&name)?;
        kept += usize::from(old.is_some());
        // As a rule it is the very object: one is a copy of the other.
        if old.as_ref().is_some_and(|old| old.is(&value) || old.eq(&value).unwrap_or(false)) {
            continue;
        }
        there.push((name.extract()?, Some(value.extract()?)));
        back.push((name.extract()?, old.map(|old| old.extract()).transpose()?));
    }
    if kept == before.len() {
        return Ok((there, back));
    }
    for (name, value) in before.iter() {
        if !now.contains(&name)? {
            there.push((name.extract()?, None));
            back.push((name.extract()?, Some(value.extract()?)));
        }
    }
    Ok((there, back))
}

fn split(entry: &[u8]) -> (&[u8], &[u8]) {
    let at = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
    (&entry[..at], entry.get(at + 1..).unwrap_or_default())
}

fn set(name: &[u8], value: &[u8]) {
    let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) else { return };
    // SAFETY: both are NUL-terminated; libc copies them.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
}

fn unset(name: &[u8]) {
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: NUL-terminated.
    unsafe { libc::unsetenv(name.as_ptr()) };
}
