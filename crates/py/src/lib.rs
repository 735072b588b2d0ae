//! `hermetic._native`: conversions between Python and the engine, and nothing that decides.
use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("HERMETIC_VERSION"))
}
