//! What CPython lends to the engine: who is calling, and how to raise an error in the calling thread.
//!
//! Everything here runs inside libc hooks. Only `describe`, called once per place, may allocate. `place`, `describe`,
//! `is_importing` and `interrupt` also work for a thread that has given the interpreter lock away, as CPython does around
//! system calls; none of them waits for it, because a thread that holds it may be waiting for the engine.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_ulong, c_void};
use core::fmt::Write as _;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock};

use hermetic_abi::{finding, look, Host, Place, PlaceText, Text};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::code;
use crate::errors;
use crate::frame;
use crate::symbol::function;

type GilCheck = extern "C" fn() -> c_int;
type UncheckedState = extern "C" fn() -> *mut ffi::PyThreadState;
type AddressToLine = extern "C" fn(*mut ffi::PyObject, c_int) -> c_int;
type ThreadIdent = extern "C" fn() -> c_ulong;

/// Functions outside the stable ABI, looked up when the adapter is prepared, because hooks must not look symbols up.
struct Lent {
    gil_check: Option<GilCheck>,
    unchecked_state: Option<UncheckedState>,
    /// From 3.12 on that function tells the calling thread's own state, and only while the thread holds the lock: nothing
    /// else has to be asked. Before, it tells the state of whichever thread holds the lock.
    is_state_own: bool,
    locks_read_clock: bool,
    address_to_line: Option<AddressToLine>,
    thread_ident: Option<ThreadIdent>,
    /// A function that does nothing, where calling one is needed to get rid of an error; see `take_back`.
    opportunity: Option<Py<PyAny>>,
    /// Code objects of the import machinery (`_find_and_load` and what it calls first).
    import_codes: Vec<usize>,
    /// Folder of the standard library, with a trailing slash.
    library: String,
}

static LENT: OnceLock<Lent> = OnceLock::new();
/// The project's root, with a trailing slash, or empty: places below it are spelled relative to it.
static ROOT: RwLock<String> = RwLock::new(String::new());

/// Looks up what hooks will need. Call before the engine attaches.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    frame::prepare(py);
    code::prepare(py);
    if LENT.get().is_some() {
        return Ok(());
    }
    let lent = Lent {
        gil_check: function!(c"PyGILState_Check", GilCheck),
        unchecked_state: function!(c"PyThreadState_GetUnchecked", UncheckedState)
            .or(function!(c"_PyThreadState_UncheckedGet", UncheckedState)),
        opportunity: if py.version_info() < (3, 13) {
            Some(py.eval(c"lambda: None", None, None)?.unbind())
        } else {
            None
        },
        is_state_own: py.version_info() >= (3, 12),
        locks_read_clock: py.version_info() >= (3, 11),
        address_to_line: function!(c"PyCode_Addr2Line", AddressToLine),
        thread_ident: function!(c"PyThread_get_thread_ident", ThreadIdent),
        import_codes: import_codes(py)?,
        library: library_folder(py)?,
    };
    let _ = LENT.set(lent);
    Ok(())
}

/// Sets the folder that call sites drop from their file names.
pub fn set_root(root: &str) {
    let mut own = ROOT.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    own.clear();
    if !root.is_empty() {
        own.push_str(root.trim_end_matches('/'));
        own.push('/');
    }
}

/// The table that the engine is given.
pub fn adapter() -> &'static Host {
    static ADAPTER: OnceLock<Adapter> = OnceLock::new();
    &ADAPTER
        .get_or_init(|| {
            Adapter(Host {
                size: core::mem::size_of::<Host>() as u32,
                image: ffi::PyEval_GetFrame as *const c_void,
                locks_read_clock: LENT.get().is_some_and(|lent| lent.locks_read_clock) as u32,
                is_running: Some(is_running),
                is_known: Some(is_known),
                place: Some(place),
                describe: Some(describe),
                is_importing: Some(is_importing),
                interrupt: Some(interrupt),
            })
        })
        .0
}

struct Adapter(Host);
// SAFETY: a table of function pointers and one code address; nothing of it is ever written again.
unsafe impl Sync for Adapter {}
// SAFETY: as above.
unsafe impl Send for Adapter {}

unsafe extern "C" fn is_running() -> c_int {
    c_int::from(holds_lock())
}

unsafe extern "C" fn is_known() -> c_int {
    c_int::from(!frame::thread_state().is_null())
}

/// Whether the calling thread holds the interpreter lock.
fn holds_lock() -> bool {
    standing().0
}

/// Whether the calling thread holds the interpreter lock, and its thread state (null where it has none).
#[inline]
fn standing() -> (bool, *mut ffi::PyThreadState) {
    let Some(lent) = LENT.get() else { return (false, core::ptr::null_mut()) };
    let current = lent.unchecked_state.map_or(core::ptr::null_mut(), |state| state());
    if lent.is_state_own && lent.unchecked_state.is_some() {
        return if current.is_null() { (false, frame::thread_state()) } else { (true, current) };
    }
    let own = frame::thread_state();
    let is_own = !own.is_null() && own == current;
    (is_own || is_lock_held_otherwise(lent), own)
}

/// The long way: a thread with several states (subinterpreters), an interpreter that does not tell.
#[cold]
fn is_lock_held_otherwise(lent: &Lent) -> bool {
    // With subinterpreters PyGILState_Check answers 1 everywhere, so the current thread state is asked as well.
    lent.gil_check.is_some_and(|check| check() != 0) && lent.unchecked_state.is_none_or(|state| !state().is_null())
}

unsafe extern "C" fn place(out: *mut Place) -> c_int {
    let (holds_lock, state) = standing();
    let running = if holds_lock { look::RUNNING } else { 0 };
    let Some(found) = frame::place(state, holds_lock) else { return running };
    // SAFETY: the engine passes a writable place.
    unsafe { out.write(found) };
    running | look::FOUND
}

unsafe extern "C" fn is_importing() -> c_int {
    c_int::from(LENT.get().is_some_and(|lent| frame::is_below(&lent.import_codes, holds_lock())))
}

/// The same for the calling thread, which holds the lock.
pub fn is_importing_here() -> bool {
    LENT.get().is_some_and(|lent| frame::is_below(&lent.import_codes, true))
}

/// Folder of the standard library, with a trailing slash.
pub fn library() -> &'static str {
    LENT.get().map_or("", |lent| lent.library.as_str())
}

unsafe extern "C" fn describe(place: Place, out: *mut PlaceText) -> c_int {
    // SAFETY: the engine passes a writable structure.
    let out = unsafe { &mut *out };
    let Some((file, name)) = code::file_and_name(place.code).or_else(|| public_names(place)) else { return 0 };
    keep(place);
    out.file = Text::new();
    out.function = Text::new();
    let _ = out.file.write_str(&spell(&file));
    let _ = out.function.write_str(&name);
    out.line = line(place);
    // SAFETY: as for this function.
    out.importing = unsafe { is_importing() } as u32;
    1
}

/// File and name through attributes, which needs the lock.
fn public_names(place: Place) -> Option<(String, String)> {
    if !holds_lock() {
        return None;
    }
    // SAFETY: checked above.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the calling thread executes this code object, so it is alive.
    let code = unsafe { Bound::from_borrowed_ptr(py, place.code as *mut ffi::PyObject) };
    // An exception that the caller is handling must not be disturbed by a look at the code object.
    let pending = PyErr::take(py);
    let name = attribute(&code, "co_qualname");
    let name = if name.is_empty() { attribute(&code, "co_name") } else { name };
    let file = attribute(&code, "co_filename");
    if let Some(error) = pending {
        error.restore(py);
    }
    Some((file, name))
}

/// Keeps a code object alive for ever, so that its address means one place for the life of the process.
fn keep(place: Place) {
    let code = place.code as *mut ffi::PyObject;
    if holds_lock() {
        // SAFETY: the lock is held and the object is alive, since this thread executes it.
        unsafe { ffi::Py_INCREF(code) };
        return;
    }
    // Counting needs the lock: the interpreter does it at its next opportunity, long before a function is dropped that
    // has just been called. If its list is full, the object is kept when it is described the next time.
    // SAFETY: callable without the lock; `code` is passed on as it is.
    unsafe { ffi::Py_AddPendingCall(Some(keep_later), code.cast()) };
}

extern "C" fn keep_later(code: *mut c_void) -> c_int {
    // SAFETY: pending calls run with the lock; the object lives (see `keep`).
    unsafe { ffi::Py_INCREF(code.cast()) };
    0
}

/// A pending call carries one number: the kind of finding in its low bits and the generation in its high bits, which are
/// free in between because an ident is an address.
const KIND_MASK: usize = 0xf;
const IDENT_MASK: usize = 0x0000_ffff_ffff_fff0;
const GENERATION_SHIFT: u32 = 48;

/// Sandboxes being left or suspended now: their findings are told by the exit, so nobody is interrupted for them any more.
static HUSHED: AtomicUsize = AtomicUsize::new(0);
/// Counts exits, so that an interruption that was asked for before one does not happen after it.
static GENERATION: AtomicU16 = AtomicU16::new(0);
/// The thread that was interrupted last, and may not have noticed yet.
static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

/// Does `work` without being interrupted by findings; an interruption that the calling thread has not noticed is taken back.
///
/// An exit has to run to its end: CPython would raise the error at the first instruction of a Python `__exit__`.
pub fn hushed<T>(work: impl FnOnce() -> T) -> T {
    HUSHED.fetch_add(1, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let ident = LENT.get().and_then(|lent| lent.thread_ident).map_or(0, |ident| ident() as usize);
    if ident != 0 && INTERRUPTED.compare_exchange(ident, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        take_back(ident);
    }
    let done = work();
    HUSHED.fetch_sub(1, Ordering::Relaxed);
    done
}

/// Takes back the error that the calling thread, which holds the interpreter lock, was made to raise and may not have noticed.
///
/// Up to 3.12 that is done by letting the thread raise it, and dropping it: an error that is only taken back leaves its mark, so
/// that CPython looks for it at every opportunity from then on, and 3.11 never gets past the first of them under a tracer.
fn take_back(ident: usize) {
    // SAFETY: by this function's contract.
    let py = unsafe { Python::assume_attached() };
    let Some(opportunity) = LENT.get().and_then(|lent| lent.opportunity.as_ref()) else {
        // SAFETY: the lock is held; null takes a pending error back.
        unsafe { ffi::PyThreadState_SetAsyncExc(ident as _, core::ptr::null_mut()) };
        return;
    };
    let handled = PyErr::take(py);
    let raised = opportunity.call0(py).err();
    if let Some(handled) = handled {
        handled.restore(py);
    }
    let Ok(class) = errors::class(py, "SandboxError") else { return };
    if let Some(other) = raised.filter(|error| !error.is_instance(py, &class)) {
        // Somebody else's, for example a signal handler's: it is raised when the exit is over.
        // SAFETY: the lock is held; the call takes its own reference to the class.
        unsafe { ffi::PyThreadState_SetAsyncExc(ident as _, other.get_type(py).as_ptr()) };
    }
}

unsafe extern "C" fn interrupt(kind: u32) {
    let Some(ident) = LENT.get().and_then(|lent| lent.thread_ident) else { return };
    let target = ident() as usize;
    if holds_lock() {
        raise_in(target, kind);
    } else if target & !IDENT_MASK == 0 && kind as usize <= KIND_MASK {
        let generation = GENERATION.load(Ordering::Relaxed) as usize;
        let packed = target | kind as usize | generation << GENERATION_SHIFT;
        // SAFETY: callable without the lock; the argument is a number.
        unsafe { ffi::Py_AddPendingCall(Some(interrupt_later), packed as *mut c_void) };
    }
}

extern "C" fn interrupt_later(packed: *mut c_void) -> c_int {
    let packed = packed as usize;
    if packed >> GENERATION_SHIFT != GENERATION.load(Ordering::Relaxed) as usize {
        return 0;
    }
    let (ident, kind) = (packed & IDENT_MASK, (packed & KIND_MASK) as u32);
    let is_here = LENT.get().and_then(|lent| lent.thread_ident).is_some_and(|own| own() as usize == ident);
    // A thread that was told of a deadlock, or that the recorded order was left, is about to wait again: an error that comes
    // later would come never.
    if matches!(kind, finding::DEADLOCK | finding::REPLAY_MISMATCH) && is_here {
        return raise_here(kind);
    }
    raise_in(ident, kind);
    0
}

/// Raises the error for a finding in the calling thread, which holds the interpreter lock.
fn raise_here(kind: u32) -> c_int {
    // SAFETY: by this function's contract.
    let py = unsafe { Python::assume_attached() };
    let Ok(class) = errors::class(py, class_name(kind)) else { return 0 };
    // SAFETY: the lock is held; the call takes its own reference.
    unsafe { ffi::PyErr_SetNone(class.as_ptr()) };
    -1
}

/// The class of `hermetic` that stands for a finding.
fn class_name(kind: u32) -> &'static str {
    match kind {
        finding::SPIN => "SpinError",
        finding::DEADLOCK => "DeadlockError",
        finding::REPLAY_EXHAUSTED => "ReplayExhausted",
        finding::REPLAY_MISMATCH | finding::REPLAY_LEFTOVER => "ReplayMismatch",
        _ => "SandboxError",
    }
}

/// Makes a thread raise the error for a finding. The caller holds the interpreter lock.
fn raise_in(ident: usize, kind: u32) {
    if HUSHED.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: by this function's contract.
    let py = unsafe { Python::assume_attached() };
    let Ok(class) = errors::class(py, class_name(kind)) else { return };
    INTERRUPTED.store(ident, Ordering::Relaxed);
    // SAFETY: the lock is held; the call takes its own reference to the class.
    unsafe { ffi::PyThreadState_SetAsyncExc(ident as _, class.as_ptr()) };
}

fn attribute(code: &Bound<'_, PyAny>, name: &str) -> String {
    let value = code.getattr(name).ok().and_then(|value| value.cast_into::<PyString>().ok());
    value.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Only reads the line table of a code object, which never changes, so the lock is not needed.
fn line(place: Place) -> u32 {
    let Some(to_line) = LENT.get().and_then(|lent| lent.address_to_line) else { return 0 };
    u32::try_from(to_line(place.code as *mut ffi::PyObject, frame::bytecode_offset(place))).unwrap_or(0)
}

/// Whether a file belongs neither to an installed package nor to the standard library.
pub fn is_project_file(file: &str) -> bool {
    let is_installed = INSTALLED.iter().any(|folder| file.contains(folder));
    !is_installed && !LENT.get().is_some_and(|lent| file.starts_with(lent.library.as_str()))
}

/// Folders that hold installed packages.
const INSTALLED: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// Spells a file name so that it is equal on another machine where that is possible.
pub fn spell(file: &str) -> String {
    for folder in INSTALLED {
        if let Some(at) = file.rfind(folder) {
            return file[at + folder.len()..].to_owned();
        }
    }
    if let Some(rest) = LENT.get().and_then(|lent| file.strip_prefix(lent.library.as_str())) {
        return format!("python3/{rest}");
    }
    let root = ROOT.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    match file.strip_prefix(root.as_str()) {
        Some(rest) if !root.is_empty() => rest.to_owned(),
        _ => file.to_owned(),
    }
}

fn import_codes(py: Python<'_>) -> PyResult<Vec<usize>> {
    let machinery = py.import("_frozen_importlib")?;
    let mut codes = Vec::new();
    for name in ["_find_and_load", "_find_and_load_unlocked", "_handle_fromlist", "_gcd_import"] {
        if let Ok(function) = machinery.getattr(name) {
            codes.push(function.getattr("__code__")?.as_ptr() as usize);
        }
    }
    Ok(codes)
}

fn library_folder(py: Python<'_>) -> PyResult<String> {
    let file: String = py.import("os")?.getattr("__file__").and_then(|file| file.extract()).unwrap_or_default();
    let end = file.rfind('/').map_or(0, |at| at + 1);
    Ok(file[..end].to_owned())
}

/// Where the calling code stands: `(file, function, line)`, or None. For tests and `doctor`.
#[pyfunction]
pub fn current_place(py: Python<'_>) -> PyResult<Option<(String, String, u32)>> {
    prepare(py)?;
    let Some(found) = frame::place(frame::thread_state(), true) else { return Ok(None) };
    let mut text = PlaceText::BLANK;
    // SAFETY: this thread holds the lock and `text` is writable.
    unsafe { describe(found, &raw mut text) };
    Ok(Some((text.file.as_str().to_owned(), text.function.as_str().to_owned(), text.line)))
}

/// Whether frames are read directly rather than through the public API.
#[pyfunction]
pub fn is_frame_direct(py: Python<'_>) -> PyResult<bool> {
    prepare(py)?;
    Ok(frame::is_direct())
}
