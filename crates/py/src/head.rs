//! The head of a journal, as JSON: what it says before its first event.
//!
//! A suite records thousands of tests on one machine. What does not change from one to the next `hermetic/_journal.py` writes
//! out, and it is kept here for as long as what it tells of stays the same.

#![allow(unsafe_code)]

use core::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::environment::Environment;
use crate::real::real_clock;
use crate::session::{decimal, Plan};

static TIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static QUOTE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What a sandbox and its twins keep of their heads: the frame that was used last.
#[derive(Default)]
pub struct Frames(Mutex<Option<Arc<Frame>>>);

/// The members of a head that stay the same.
struct Frame {
    moment: Moment,
    /// Those of `config` that the options decide.
    config: String,
    /// Those that tell of machine and environment.
    machine: String,
}

/// What may change while the process runs.
struct Moment {
    /// `time.tzname`, which is another object when it changes.
    zone: Py<PyAny>,
    locale: Vec<u8>,
    environment: u64,
}

impl Frames {
    /// The head of a journal that begins now. `frame` writes out what stays the same.
    pub fn head(
        &self,
        plan: &Plan,
        seed: &Bound<'_, PyAny>,
        test: Option<&Bound<'_, PyAny>>,
        frame: impl FnOnce() -> PyResult<(String, String)>,
    ) -> PyResult<Vec<u8>> {
        let py = seed.py();
        let moment = Moment::now(py)?;
        let known = self.last().clone().filter(|known| known.moment.is_same(&moment));
        let Frame { config, machine, .. } = &*match known {
            Some(known) => known,
            None => {
                let (config, machine) = frame()?;
                let fresh = Arc::new(Frame { moment, config, machine });
                *self.last() = Some(fresh.clone());
                fresh
            }
        };
        let version = env!("HERMETIC_VERSION");
        let test = match test {
            Some(name) => quoted(name)?,
            None => "null".to_owned(),
        };
        let created_ns = real_clock(hermetic_abi::clock::WALL);
        let now_ns = plan.pinned_now_ns().unwrap_or(created_ns);
        let seed = decimal(seed)?;
        let text = format!(
            r#"{{"hermetic":"{version}","test":{test},"attempt":1,"created_at_ns":{created_ns},"config":{{{config},"now":{now_ns},"seed":"{seed}"}},{machine}}}"#
        );
        Ok(text.into_bytes())
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Frame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moment {
    fn now(py: Python<'_>) -> PyResult<Moment> {
        let time = TIME.get_or_try_init(py, || Ok::<_, PyErr>(py.import("time")?.into_any().unbind()))?;
        // SAFETY: null asks for the name and changes nothing; the interpreter lock keeps others from changing it meanwhile.
        let name = unsafe { libc::setlocale(libc::LC_CTYPE, core::ptr::null()) };
        // SAFETY: null, or a C string that lives until the locale is changed.
        let locale = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes().to_vec());
        Ok(Moment {
            zone: time.getattr(py, pyo3::intern!(py, "tzname"))?,
            locale: locale.unwrap_or_default(),
            environment: Environment::remember(py)?.number(),
        })
    }

    fn is_same(&self, other: &Moment) -> bool {
        self.environment == other.environment && self.zone.is(&other.zone) && self.locale == other.locale
    }
}

/// A text as JSON has it, in ASCII.
fn quoted(text: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = text.py();
    let quote = QUOTE.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("json.encoder")?.getattr("encode_basestring_ascii")?.unbind())
    })?;
    Ok(quote.bind(py).call1((text,))?.cast::<PyString>()?.to_str()?.to_owned())
}
