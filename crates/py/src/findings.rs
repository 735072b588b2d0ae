//! What the engine noticed inside a sandbox, as Python objects.

use hermetic_abi::{finding, Finding as Raw};
use pyo3::prelude::*;

/// One thing that the engine noticed; equal ones are counted.
#[pyclass(frozen, module = "hermetic._native", get_all)]
pub struct Finding {
    /// "refusal", "spin", "replay-mismatch", "replay-exhausted", "replay-leftover", "record-stopped", "deadlock",
    /// "external-child", "turn-lost", "floor-network", "floor-process", "floor-write", or what a front end noticed itself
    /// ("outside-write").
    kind: String,
    count: u32,
    /// For refusals; None where there is no port.
    port: Option<i32>,
    /// Whether the sandbox (or the test) must fail.
    fatal: bool,
    /// For refusals: host, address or path.
    subject: String,
    message: String,
    /// `file:line in function`, or "".
    site: String,
}

#[pymethods]
impl Finding {
    /// A finding of the front end's own.
    #[new]
    #[pyo3(signature = (kind, message, *, subject=String::new(), site=String::new()))]
    fn new(kind: String, message: String, subject: String, site: String) -> Finding {
        Finding { kind, count: 1, port: None, fatal: false, subject, message, site }
    }

    fn __repr__(&self) -> String {
        format!("Finding(kind={:?}, count={}, message={:?}, site={:?})", self.kind, self.count, self.message, self.site)
    }
}

impl From<&Raw> for Finding {
    fn from(raw: &Raw) -> Finding {
        Finding {
            kind: kind_name(raw.kind).to_owned(),
            count: raw.count,
            port: (raw.port >= 0).then_some(raw.port),
            fatal: raw.fatal != 0,
            subject: raw.subject.as_str().to_owned(),
            message: raw.message.as_str().to_owned(),
            site: raw.site.as_str().to_owned(),
        }
    }
}

fn kind_name(kind: u32) -> &'static str {
    match kind {
        finding::REFUSAL => "refusal",
        finding::SPIN => "spin",
        finding::DEADLOCK => "deadlock",
        finding::EXTERNAL_CHILD => "external-child",
        finding::TURN_LOST => "turn-lost",
        finding::REPLAY_MISMATCH => "replay-mismatch",
        finding::REPLAY_EXHAUSTED => "replay-exhausted",
        finding::REPLAY_LEFTOVER => "replay-leftover",
        finding::RECORD_STOPPED => "record-stopped",
        finding::FLOOR_NETWORK => "floor-network",
        finding::FLOOR_PROCESS => "floor-process",
        finding::FLOOR_WRITE => "floor-write",
        _ => "unknown",
    }
}
