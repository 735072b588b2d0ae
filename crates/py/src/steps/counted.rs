//! Which code's steps count, by the name of its file.

use pyo3::ffi;
use std::sync::Mutex;

use crate::{code, engine, host};

/// Packages of the harness, as they are installed: how much of them runs depends on how the tests are run.
const HARNESS: [&str; 7] = ["_pytest/", "pluggy/", "pytest_", "hermetic/", "xdist/", "execnet/", "coverage/"];
const INSTALLED: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// File names that were judged. A name that is kept here stays alive, so that its address is never another name's.
static JUDGED: Mutex<[(usize, bool); PLACES]> = Mutex::new([(0, false); PLACES]);
const PLACES: usize = 1024;
/// Places that are looked at for one name.
const PROBES: usize = 8;

/// The folder of this package, with a trailing slash.
static OWN: std::sync::OnceLock<String> = std::sync::OnceLock::new();

pub fn prepare() {
    OWN.get_or_init(|| engine::folder().map(|folder| format!("{}/", folder.display())).unwrap_or_default());
}

/// Whether the steps of this code object, which the calling thread executes, are counted. The caller holds the interpreter lock.
pub fn is_counted(code: *mut ffi::PyObject) -> bool {
    let Some(name) = code::file_object(code as usize) else { return true };
    let Ok(mut judged) = JUDGED.lock() else { return true };
    let start = name as usize / 16;
    for probe in 0..PROBES {
        let place = &mut judged[(start + probe) % PLACES];
        if place.0 == name as usize {
            return place.1;
        }
        if place.0 == 0 {
            *place = (name as usize, judge(code));
            // SAFETY: the lock is held, and the object is alive, since its code is.
            unsafe { ffi::Py_INCREF(name.cast_mut().cast()) };
            return place.1;
        }
    }
    judge(code)
}

fn judge(code: *mut ffi::PyObject) -> bool {
    let Some((file, _)) = code::file_and_name(code as usize) else { return true };
    is_file_counted(&file, host::library(), OWN.get().map_or("", String::as_str))
}

fn is_file_counted(file: &str, library: &str, own: &str) -> bool {
    for folder in INSTALLED {
        if let Some(at) = file.rfind(folder) {
            let rest = &file[at + folder.len()..];
            return !HARNESS.iter().any(|package| rest.starts_with(package));
        }
    }
    let is_below = |folder: &str| !folder.is_empty() && file.starts_with(folder);
    !file.starts_with("<frozen ") && !is_below(library) && !is_below(own)
}

#[cfg(test)]
mod tests {
    use super::is_file_counted;

    #[test]
    fn code_of_the_program_counts_and_what_runs_it_does_not() {
        for (file, is_counted) in [
            ("/home/me/pytest_project/test_a.py", true),
            ("<string>", true),
            ("/usr/lib/python3.11/threading.py", false),
            ("<frozen importlib._bootstrap>", false),
            ("/usr/lib/python3.11/site-packages/shop/till.py", true),
            ("/usr/lib/python3.11/site-packages/_pytest/python.py", false),
            ("/venv/lib/python3.11/site-packages/pytest_asyncio/plugin.py", false),
            ("/usr/lib/python3/dist-packages/pluggy/_callers.py", false),
            ("/src/python/hermetic/_sandbox.py", false),
        ] {
            assert_eq!(is_file_counted(file, "/usr/lib/python3.11/", "/src/python/hermetic/"), is_counted, "{file}");
        }
    }
}
