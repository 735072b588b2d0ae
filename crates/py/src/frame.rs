//! Which Python code the calling thread runs, found without allocating: by reading the interpreter's own frame structures.
//!
//! Their layout differs per version and is not promised, so it is checked once against the public API, frame by frame up
//! the calling stack; where it does not agree (a new version, a debug build) the public API is used, which is slower.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

use hermetic_abi::Place;
use pyo3::ffi;
use pyo3::prelude::*;

/// Frames compared with the public API before a layout is believed.
const FRAMES_CHECKED_MAX: usize = 16;
/// Frames that [`is_below`] looks at before it gives up.
const FRAMES_WALKED_MAX: usize = 2000;
/// `FRAME_OWNED_BY_CSTACK`: a frame that stands for C code between two Python frames (3.12 and later).
const OWNER_C_STACK: u8 = 3;
/// The bytecode begins behind the code object's fields; anything else is a wrong reading.
const CODE_HEADER_RANGE: core::ops::Range<usize> = 64..1024;

/// Offsets in bytes, for 64-bit builds.
#[derive(Clone, Copy)]
struct Layout {
    /// In the thread state: the pointer to the frame, or to the C-frame that holds it.
    thread: usize,
    /// In the C-frame: the pointer to the frame (3.11 and 3.12 only).
    c_frame: Option<usize>,
    /// In the frame.
    code: usize,
    previous: usize,
    instruction: usize,
    owner: Option<usize>,
    /// 3.10 stores an instruction number; later versions a pointer into the code object.
    is_number: bool,
}

const LAYOUTS: [((u8, u8), Layout); 4] = [
    (
        (3, 10),
        Layout { thread: 24, c_frame: None, code: 32, previous: 24, instruction: 96, owner: None, is_number: true },
    ),
    (
        (3, 11),
        Layout { thread: 56, c_frame: Some(8), code: 32, previous: 48, instruction: 56, owner: None, is_number: false },
    ),
    (
        (3, 12),
        Layout {
            thread: 56,
            c_frame: Some(0),
            code: 0,
            previous: 8,
            instruction: 56,
            owner: Some(70),
            is_number: false,
        },
    ),
    (
        (3, 13),
        Layout { thread: 72, c_frame: None, code: 0, previous: 8, instruction: 56, owner: Some(70), is_number: false },
    ),
];

/// A layout that agreed with the public API, and where the bytecode begins inside a code object (0 for 3.10).
#[derive(Clone, Copy)]
struct Reader {
    layout: Layout,
    header: usize,
}

static READER: OnceLock<Option<Reader>> = OnceLock::new();

/// Chooses the way of reading. Call once, from a thread that runs Python code.
pub fn prepare(py: Python<'_>) {
    READER.get_or_init(|| find_reader(py));
}

/// Whether frames are read directly (tests and `doctor` ask).
pub fn is_direct() -> bool {
    matches!(READER.get(), Some(Some(_)))
}

/// The thread state of the calling thread, with or without the interpreter lock; null where it has none.
pub fn thread_state() -> *mut ffi::PyThreadState {
    // SAFETY: reads a thread-local slot; callable from any thread at any time.
    unsafe { ffi::PyGILState_GetThisThreadState() }
}

/// The place that the calling thread executes, whose thread state this is. Only a thread's own calls change its frames, so the
/// interpreter lock is not needed; where frames are not read directly, `holds_lock` decides whether there is an answer.
pub fn place(state: *mut ffi::PyThreadState, holds_lock: bool) -> Option<Place> {
    match READER.get() {
        Some(Some(reader)) => {
            let frame = reader.first(state);
            (!frame.is_null()).then(|| reader.place(frame))
        }
        _ if holds_lock => public_place(),
        _ => None,
    }
}

/// Whether a frame of one of these code objects is on the calling thread's stack. As for [`place`].
pub fn is_below(codes: &[usize], holds_lock: bool) -> bool {
    let Some(Some(reader)) = READER.get() else { return holds_lock && is_below_public(codes) };
    let mut frame = reader.first(thread_state());
    for _ in 0..FRAMES_WALKED_MAX {
        if frame.is_null() {
            return false;
        }
        if codes.contains(&reader.place(frame).code) {
            return true;
        }
        frame = reader.next(frame);
    }
    false
}

/// Byte offset inside the bytecode, as `PyCode_Addr2Line` wants it.
pub fn bytecode_offset(place: Place) -> c_int {
    match READER.get() {
        Some(Some(reader)) if reader.layout.is_number => (place.offset as c_int).wrapping_mul(2),
        Some(Some(reader)) => place.offset.wrapping_sub(reader.header) as c_int,
        _ => place.offset as c_int,
    }
}

/// Reads a pointer-sized field.
fn field(base: *const c_void, offset: usize) -> *const c_void {
    // SAFETY: offsets come from a layout that belongs to the running version; while it is being checked, every frame
    // structure is larger than the offsets used, so the read stays inside the object.
    unsafe { base.cast::<u8>().wrapping_add(offset).cast::<*const c_void>().read_unaligned() }
}

impl Reader {
    fn first(self, state: *mut ffi::PyThreadState) -> *const c_void {
        if state.is_null() {
            return core::ptr::null();
        }
        let mut frame = field(state.cast(), self.layout.thread);
        if let Some(offset) = self.layout.c_frame {
            if frame.is_null() {
                return frame;
            }
            frame = field(frame, offset);
        }
        self.skip(frame)
    }

    fn next(self, frame: *const c_void) -> *const c_void {
        self.skip(field(frame, self.layout.previous))
    }

    fn skip(self, mut frame: *const c_void) -> *const c_void {
        let Some(owner) = self.layout.owner else { return frame };
        while !frame.is_null() {
            // SAFETY: as in `field`, one byte.
            let value = unsafe { frame.cast::<u8>().wrapping_add(owner).read() };
            if value != OWNER_C_STACK {
                break;
            }
            frame = field(frame, self.layout.previous);
        }
        frame
    }

    fn place(self, frame: *const c_void) -> Place {
        let code = field(frame, self.layout.code) as usize;
        let instruction = field(frame, self.layout.instruction) as usize;
        // 3.10: a 32-bit number in the low half. Later: a pointer into the code object, kept relative to it.
        let offset = if self.layout.is_number { instruction & 0xffff_ffff } else { instruction.wrapping_sub(code) };
        Place { code, offset }
    }
}

fn find_reader(py: Python<'_>) -> Option<Reader> {
    if cfg!(not(target_pointer_width = "64")) {
        return None;
    }
    let version = py.version_info();
    let layout = LAYOUTS.iter().find(|(known, _)| *known == (version.major, version.minor))?.1;
    let top = current_frame(py)?;
    let (code, last) = public_frame(&top)?;
    let mut reader = Reader { layout, header: 0 };
    let frame = reader.first(thread_state());
    if frame.is_null() || reader.place(frame).code != code {
        return None;
    }
    if !layout.is_number {
        reader.header = reader.place(frame).offset.wrapping_sub(last);
        if !CODE_HEADER_RANGE.contains(&reader.header) {
            return None;
        }
    }
    agrees(reader, frame, top).then_some(reader)
}

/// Compares the stack as the layout reads it with the stack as `f_back` tells it.
fn agrees(reader: Reader, mut frame: *const c_void, top: Bound<'_, PyAny>) -> bool {
    let mut public = Some(top);
    for _ in 0..FRAMES_CHECKED_MAX {
        let Some(object) = public else { return true };
        let Some((code, last)) = public_frame(&object) else { return false };
        if frame.is_null() {
            return false;
        }
        let place = reader.place(frame);
        let offset = if reader.layout.is_number { place.offset * 2 } else { place.offset.wrapping_sub(reader.header) };
        if place.code != code || offset != last {
            return false;
        }
        public = object.getattr("f_back").ok().filter(|back| !back.is_none());
        frame = reader.next(frame);
    }
    true
}

fn current_frame(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the interpreter lock is held (`py`); the result is borrowed or null.
    let frame = unsafe { ffi::PyEval_GetFrame() };
    // SAFETY: as above; a new reference is taken before anything else can run.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, frame.cast()) }
}

/// Code object and `f_lasti` as the public API gives them.
fn public_frame(frame: &Bound<'_, PyAny>) -> Option<(usize, usize)> {
    let code = frame.getattr("f_code").ok()?.as_ptr() as usize;
    let last = frame.getattr("f_lasti").ok()?.extract::<isize>().ok()?;
    Some((code, last as usize))
}

fn public_place() -> Option<Place> {
    // SAFETY: called only by a thread that holds the interpreter lock.
    let py = unsafe { Python::assume_attached() };
    let (code, offset) = public_frame(&current_frame(py)?)?;
    Some(Place { code, offset })
}

fn is_below_public(codes: &[usize]) -> bool {
    // SAFETY: called only by a thread that holds the interpreter lock.
    let py = unsafe { Python::assume_attached() };
    let mut frame = current_frame(py);
    for _ in 0..FRAMES_WALKED_MAX {
        let Some(object) = frame else { return false };
        if public_frame(&object).is_some_and(|(code, _)| codes.contains(&code)) {
            return true;
        }
        frame = object.getattr("f_back").ok().filter(|back| !back.is_none());
    }
    false
}
