//! Reads file and name of a code object as memory, for threads that run without the interpreter lock.
//!
//! CPython releases its lock around `getrandom`, `sleep`, `connect` and many more, so their call sites can only be told
//! without it. A code object that the calling thread executes is alive and never changes, and neither do its texts, so
//! reading them needs no lock; where they lie is measured once, with the lock, on objects whose contents are known.

#![allow(unsafe_code)]

use core::ffi::c_void;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyString;

const WORD: usize = 8;
/// `PyObject_HEAD`; fields begin behind it.
const HEADER_LEN: usize = 16;
/// Longest text that is read.
const TEXT_LEN_MAX: usize = 4096;
/// In every CPython from 3.10 to 3.13: `length` and `state` of a text.
const LENGTH_OFFSET: usize = 16;
const STATE_OFFSET: usize = 32;
/// Where the characters of a compact text begin: (ASCII, others), up to 3.11 and from 3.12 on.
const DATA_OFFSETS: [(usize, usize); 2] = [(48, 72), (40, 56)];
/// Texts of each width that a text can have.
const SAMPLES: [&str; 4] = ["ascii", "caf\u{e9}", "\u{3a9}mega", "\u{1f40d}snake"];

#[derive(Clone, Copy)]
struct Layout {
    filename: usize,
    /// `co_qualname`, or `co_name` on 3.10.
    name: usize,
    data: (usize, usize),
}

static LAYOUT: OnceLock<Option<Layout>> = OnceLock::new();

/// Measures. Call once, with the interpreter lock.
pub fn prepare(py: Python<'_>) {
    LAYOUT.get_or_init(|| measure(py).ok().flatten());
}

/// File and name of a code object that this thread executes; None where the layout is not known.
pub fn file_and_name(code: usize) -> Option<(String, String)> {
    let layout = (*LAYOUT.get()?)?;
    let code = code as *const c_void;
    Some((text(pointer(code, layout.filename), layout.data)?, text(pointer(code, layout.name), layout.data)?))
}

/// The text object with the file of a code object, which lives; None where the layout is not known.
pub fn file_object(code: usize) -> Option<*const c_void> {
    let layout = (*LAYOUT.get()?)?;
    let name = pointer(code as *const c_void, layout.filename);
    (!name.is_null()).then_some(name)
}

fn measure(py: Python<'_>) -> PyResult<Option<Layout>> {
    let version = py.version_info();
    if cfg!(not(target_pointer_width = "64")) || (version.major, version.minor) > (3, 13) {
        return Ok(None);
    }
    let data = DATA_OFFSETS[usize::from(version >= (3, 12))];
    let is_text_known = SAMPLES.iter().all(|sample| {
        let object = PyString::new(py, sample);
        text(object.as_ptr().cast(), data).as_deref() == Some(*sample)
    });
    if !is_text_known {
        return Ok(None);
    }
    // A method: its name and its qualified name are two objects.
    let code = py.import("os")?.getattr("_Environ")?.getattr("__getitem__")?.getattr("__code__")?;
    let size: usize = code.get_type().getattr("__basicsize__")?.extract()?;
    let find = |attribute: &str| -> PyResult<Option<usize>> {
        let wanted = code.getattr(attribute)?.as_ptr() as *const c_void;
        let mut places = (HEADER_LEN..size.saturating_sub(WORD - 1)).step_by(WORD);
        Ok(places.find(|offset| pointer(code.as_ptr().cast(), *offset) == wanted))
    };
    let name = if version >= (3, 11) { "co_qualname" } else { "co_name" };
    Ok(find("co_filename")?.zip(find(name)?).map(|(filename, name)| Layout { filename, name, data }))
}

fn pointer(object: *const c_void, offset: usize) -> *const c_void {
    // SAFETY: offsets lie inside the object: they were measured there, or are searched for below its size.
    unsafe { object.cast::<u8>().wrapping_add(offset).cast::<*const c_void>().read_unaligned() }
}

/// Reads a compact text; None for anything else.
fn text(object: *const c_void, data: (usize, usize)) -> Option<String> {
    if object.is_null() {
        return None;
    }
    let length = pointer(object, LENGTH_OFFSET) as usize;
    let state = pointer(object, STATE_OFFSET) as usize as u32;
    let (width, is_compact, is_ascii) = ((state >> 2) & 7, state & (1 << 5) != 0, state & (1 << 6) != 0);
    if !is_compact || length > TEXT_LEN_MAX || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let start = object.cast::<u8>().wrapping_add(if is_ascii { data.0 } else { data.1 });
    (0..length)
        .map(|index| {
            let at = start.wrapping_add(index * width as usize);
            let mut bytes = [0; 4];
            // SAFETY: a compact text holds `length` characters of `width` bytes behind its header.
            unsafe { core::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), width as usize) };
            Some(char::from_u32(u32::from_le_bytes(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER))
        })
        .collect()
}
