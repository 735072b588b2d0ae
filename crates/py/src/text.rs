//! Pure conversions that front ends share with the engine: policy entries and seeds of tests.

use hermetic_policy::Policy;
use pyo3::prelude::*;

use crate::errors;

/// Checks network policy entries; the error names the entry and what is accepted.
#[pyfunction]
pub fn check_entries(py: Python<'_>, entries: Vec<String>) -> PyResult<()> {
    let mut policy = Policy::new(true, true);
    for entry in &entries {
        policy.add(entry).map_err(|error| errors::new(py, "OptionError", &format!("network: {error}")))?;
    }
    Ok(())
}

/// The seed of a test: from its node id and the base seed of the session.
#[pyfunction]
pub fn seed_for_test(node_id: &str, base: u64) -> u64 {
    hermetic_model::seed::for_test(node_id, base)
}
