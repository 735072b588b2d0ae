//! Reads and finishes journal files. The format itself is the business of crate `hermetic-journal`.

use std::fs;
use std::path::{Path, PathBuf};

use hermetic_journal::{finish, Event, Form, Journal};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// Finishes a raw journal and puts it at `path` in one step, so that no reader sees half of it.
pub fn finish_to(py: Python<'_>, raw: &[u8], path: &str) -> PyResult<()> {
    let target = Path::new(path);
    let bytes = finish(raw, Form::from_path(target))
        .map_err(|error| errors::sandbox(py, &format!("cannot finish the journal {path}: {error}")))?;
    write(target, &bytes).map_err(|error| errors::sandbox(py, &format!("cannot write the journal {path}: {error}")))
}

fn write(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut part = target.as_os_str().to_owned();
    part.push(format!(".new-{}", std::process::id()));
    let part = PathBuf::from(part);
    fs::write(&part, bytes)?;
    fs::rename(&part, target).inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Finishes the journal in `source`, which a process left behind, to `target`. Returns its head as JSON text.
#[pyfunction]
pub fn finish_journal(py: Python<'_>, source: &str, target: &str) -> PyResult<String> {
    let bytes = read(py, source)?;
    let journal = decode(py, source, &bytes)?;
    finish_to(py, &journal.to_raw(), target)?;
    Ok(journal.head_text().to_owned())
}

/// Reads a journal in any of its forms: its head as JSON text, its raw form, and the number of its events.
#[pyfunction]
pub fn read_journal<'py>(py: Python<'py>, path: &str) -> PyResult<(String, Bound<'py, PyBytes>, u64)> {
    let bytes = read(py, path)?;
    let journal = decode(py, path, &bytes)?;
    Ok((journal.head_text().to_owned(), PyBytes::new(py, &journal.to_raw()), journal.event_count()))
}

/// What a front end wrote under a name into the journal at `path`; the last of it.
#[pyfunction]
pub fn journal_state<'py>(py: Python<'py>, path: &str, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let bytes = read(py, path)?;
    let journal = decode(py, path, &bytes)?;
    let found = journal.events().filter_map(|event| match event {
        Event::State { name: own, bytes, .. } if own == name => Some(PyBytes::new(py, bytes)),
        _ => None,
    });
    Ok(found.last())
}

fn read(py: Python<'_>, path: &str) -> PyResult<Vec<u8>> {
    fs::read(path)
        .map_err(|error| errors::new(py, "ReplayMismatch", &format!("cannot read the journal {path}: {error}")))
}

fn decode(py: Python<'_>, path: &str, bytes: &[u8]) -> PyResult<Journal> {
    Journal::decode(bytes).map_err(|error| {
        let hint = error.hint();
        let hint = if hint.is_empty() { String::new() } else { format!("\n  hint: {hint}") };
        errors::new(py, "ReplayMismatch", &format!("cannot use the journal {path}: {error}{hint}"))
    })
}
