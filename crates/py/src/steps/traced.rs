//! Steps by the C hooks of tracers and profilers, up to 3.11: lines, and calls of functions in C that come back.
//!
//! A thread has one hook of each kind. Ours are put in front of those that are there, and leave their objects where they
//! are, so that `sys.gettrace` tells what it told. Who sets another tracer or profiler inside takes our hook away; the other
//! of our hooks notices with the next event and puts it back in front.

use core::ffi::{c_int, c_void};
use core::ptr;
use pyo3::ffi::{self, PyFrameObject, PyObject, PyThreadState};
use pyo3::prelude::*;
use std::sync::OnceLock;

use super::{counted, step};
use crate::symbol::function;
use crate::{errors, frame};

/// `PyTrace_LINE` and `PyTrace_C_RETURN`.
const LINE: c_int = 2;
const C_RETURN: c_int = 6;

type Hook = unsafe extern "C" fn(*mut PyObject, *mut PyFrameObject, c_int, *mut PyObject) -> c_int;
type Set = unsafe extern "C" fn(*mut PyThreadState, Option<Hook>, *mut PyObject) -> c_int;
type Head = unsafe extern "C" fn(*mut c_void) -> *mut PyThreadState;
type Next = unsafe extern "C" fn(*mut PyThreadState) -> *mut PyThreadState;

/// What of a thread state is used, in bytes from its start: two hooks, then their two objects.
const PROFILE_OFFSETS: [((u8, u8), usize); 2] = [((3, 10), 56), ((3, 11), 64)];
const WORD: usize = 8;

struct Lent {
    profile_offset: usize,
    set_profile: Set,
    set_trace: Set,
    head: Head,
    next: Next,
    /// `_thread.start_new_thread`.
    start: Py<PyAny>,
}

static LENT: OnceLock<Lent> = OnceLock::new();

/// The two kinds of hooks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Profile,
    Trace,
}

const KINDS: [Kind; 2] = [Kind::Profile, Kind::Trace];

/// What was there before ours, in each thread.
struct Before {
    state: *mut PyThreadState,
    profile: Option<Hook>,
    trace: Option<Hook>,
}

struct Threads(core::cell::UnsafeCell<Vec<Before>>);
// SAFETY: used by threads that hold the interpreter lock alone, and never across a call that may give it away.
unsafe impl Sync for Threads {}
static THREADS: Threads = Threads(core::cell::UnsafeCell::new(Vec::new()));

pub fn begin(py: Python<'_>) -> PyResult<()> {
    if LENT.get().is_none() {
        let lent = find(py)?;
        let message =
            "schedule='seeded' cannot be used with this build of Python: it keeps the hooks of tracers elsewhere";
        let _ = LENT.set(lent.ok_or_else(|| errors::sandbox(py, message))?);
    }
    for_each_state(attach);
    Ok(())
}

pub fn end(_: Python<'_>) {
    for_each_state(detach);
    threads().clear();
}

fn find(py: Python<'_>) -> PyResult<Option<Lent>> {
    let version = py.version_info();
    let offset = PROFILE_OFFSETS.iter().find(|(known, _)| *known == (version.major, version.minor));
    let functions = (
        function!(c"_PyEval_SetProfile", Set),
        function!(c"_PyEval_SetTrace", Set),
        function!(c"PyInterpreterState_ThreadHead", Head),
        function!(c"PyThreadState_Next", Next),
    );
    let (Some(&(_, profile_offset)), (Some(set_profile), Some(set_trace), Some(head), Some(next))) =
        (offset, functions)
    else {
        return Ok(None);
    };
    let start = py.import("_thread")?.getattr("start_new_thread")?.unbind();
    let lent = Lent { profile_offset, set_profile, set_trace, head, next, start };
    Ok(agrees(py, &lent)?.then_some(lent))
}

/// Whether the objects of the hooks lie where they should: as the interpreter tells them, and where it puts one.
fn agrees(py: Python<'_>, lent: &Lent) -> PyResult<bool> {
    let state = frame::thread_state();
    let sys = py.import("sys")?;
    for (kind, name) in [(Kind::Profile, "getprofile"), (Kind::Trace, "gettrace")] {
        let told = sys.call_method0(name)?;
        let told = if told.is_none() { ptr::null_mut() } else { told.as_ptr() };
        if state.is_null() || object(lent, state, kind) != told {
            return Ok(false);
        }
        if hook(lent, state, kind).is_some() {
            continue;
        }
        let probe = sys.as_ptr();
        set(lent, state, kind, Some(ours(kind)), probe);
        let is_there = is_ours(hook(lent, state, kind), kind) && object(lent, state, kind) == probe;
        set(lent, state, kind, None, ptr::null_mut());
        if !is_there {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a hook is ours.
fn is_ours(hook: Option<Hook>, kind: Kind) -> bool {
    hook.is_some_and(|hook| ptr::fn_addr_eq(hook, ours(kind)))
}

fn ours(kind: Kind) -> Hook {
    match kind {
        Kind::Profile => on_profile,
        Kind::Trace => on_trace,
    }
}

fn set(lent: &Lent, state: *mut PyThreadState, kind: Kind, hook: Option<Hook>, object: *mut PyObject) {
    let set = if kind == Kind::Profile { lent.set_profile } else { lent.set_trace };
    // SAFETY: a living thread state; the lock is held.
    unsafe { set(state, hook, object) };
}

/// Where a thread state keeps the hook of a kind; its object lies two words behind.
fn slot(lent: &Lent, state: *mut PyThreadState, kind: Kind) -> *mut Option<Hook> {
    let offset = lent.profile_offset + if kind == Kind::Profile { 0 } else { WORD };
    state.cast::<u8>().wrapping_add(offset).cast()
}

fn hook(lent: &Lent, state: *mut PyThreadState, kind: Kind) -> Option<Hook> {
    // SAFETY: inside a thread state of a version whose layout is known; the lock is held.
    unsafe { slot(lent, state, kind).read() }
}

fn object(lent: &Lent, state: *mut PyThreadState, kind: Kind) -> *mut PyObject {
    // SAFETY: as for `hook`.
    unsafe { slot(lent, state, kind).cast::<*mut PyObject>().wrapping_add(2).read() }
}

/// One thread at a time, as [`Threads`] says.
fn threads() -> &'static mut Vec<Before> {
    // SAFETY: the caller holds the interpreter lock, and drops the borrow before it gives it away.
    unsafe { &mut *THREADS.0.get() }
}

/// What was there before ours in a thread.
fn before(state: *mut PyThreadState, kind: Kind) -> Option<Hook> {
    let known = threads().iter().find(|known| known.state == state)?;
    if kind == Kind::Profile {
        known.profile
    } else {
        known.trace
    }
}

fn remember(state: *mut PyThreadState, kind: Kind, hook: Option<Hook>) {
    let threads = threads();
    let place = threads.iter().position(|known| known.state == state).unwrap_or_else(|| {
        threads.push(Before { state, profile: None, trace: None });
        threads.len() - 1
    });
    match kind {
        Kind::Profile => threads[place].profile = hook,
        Kind::Trace => threads[place].trace = hook,
    }
}

fn for_each_state(act: impl Fn(&Lent, *mut PyThreadState)) {
    let Some(lent) = LENT.get() else { return };
    // SAFETY: the lock is held.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: as above: states come and go with the lock held only.
    let mut state = unsafe { (lent.head)(interpreter.cast()) };
    while !state.is_null() {
        act(lent, state);
        // SAFETY: as above.
        state = unsafe { (lent.next)(state) };
    }
}

/// Puts our hooks in front of those of a thread.
fn attach(lent: &Lent, state: *mut PyThreadState) {
    for kind in KINDS {
        let there = hook(lent, state, kind);
        if is_ours(there, kind) {
            continue;
        }
        remember(state, kind, there);
        if there.is_none() {
            set(lent, state, kind, Some(ours(kind)), ptr::null_mut());
        } else {
            // SAFETY: as for `hook`; the object stays the other's.
            unsafe { slot(lent, state, kind).write(Some(ours(kind))) };
        }
    }
}

fn detach(lent: &Lent, state: *mut PyThreadState) {
    for kind in KINDS {
        if !is_ours(hook(lent, state, kind), kind) {
            continue;
        }
        match before(state, kind) {
            None => set(lent, state, kind, None, ptr::null_mut()),
            // SAFETY: as for `hook`.
            there => unsafe { slot(lent, state, kind).write(there) },
        }
    }
}

/// Inside a hook: puts one of ours back that somebody has replaced.
fn attach_again(lent: &Lent, state: *mut PyThreadState) {
    for kind in KINDS {
        let there = hook(lent, state, kind);
        if !is_ours(there, kind) {
            remember(state, kind, there);
            // SAFETY: as for `hook`. The interpreter looks whether there are hooks when this one returns.
            unsafe { slot(lent, state, kind).write(Some(ours(kind))) };
        }
    }
}

unsafe extern "C" fn on_trace(
    object: *mut PyObject,
    frame: *mut PyFrameObject,
    what: c_int,
    argument: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter's arguments.
    unsafe { on_event(Kind::Trace, object, frame, what, argument) }
}

unsafe extern "C" fn on_profile(
    object: *mut PyObject,
    frame: *mut PyFrameObject,
    what: c_int,
    argument: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter's arguments.
    unsafe { on_event(Kind::Profile, object, frame, what, argument) }
}

/// # Safety
/// The arguments of a hook of that kind, called by the interpreter.
unsafe fn on_event(
    kind: Kind,
    object: *mut PyObject,
    frame: *mut PyFrameObject,
    what: c_int,
    argument: *mut PyObject,
) -> c_int {
    let state = frame::thread_state();
    let mut result = 0;
    if let Some(there) = before(state, kind) {
        // SAFETY: the hook that the interpreter would have called, with what it would have got.
        result = unsafe { there(object, frame, what, argument) };
    }
    let Some(lent) = LENT.get() else { return result };
    if super::is_counting() {
        attach_again(lent, state);
    }
    if result != 0 {
        return result;
    }
    let is_step = match kind {
        Kind::Trace => what == LINE,
        Kind::Profile => what == C_RETURN,
    };
    if !is_step {
        return 0;
    }
    if kind == Kind::Profile && argument == lent.start.as_ptr() {
        for_each_state(attach);
    }
    // SAFETY: the interpreter's frame; the code is a new reference.
    let code = unsafe { ffi::PyFrame_GetCode(frame) }.cast::<PyObject>();
    let is_counted = counted::is_counted(code);
    // SAFETY: the frame holds the code as well.
    unsafe { ffi::Py_DECREF(code) };
    if is_counted {
        step();
    }
    0
}
