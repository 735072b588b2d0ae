//! `<stdio.h>`: random devices opened as streams.
//!
//! libc reads a stream by calls of its own that cross no slot, so the stream is made of our reading function instead.

use super::sys_random;
use crate::descriptors;
use crate::guard::Call;
use crate::table::hooks;
use core::ffi::{c_char, c_int, c_void, CStr};
use hermetic_engine::sandbox::Mode;
use hermetic_journal::Source;
use libc::{size_t, ssize_t, FILE};

hooks! {
    fopen(path: *const c_char, mode: *const c_char) -> *mut FILE;
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE;
}

/// glibc's `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut libc::off64_t, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

unsafe extern "C" fn read_random(_cookie: *mut c_void, buffer: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: libc passes its own buffer.
    if !unsafe { sys_random::fill(Source::Device, buffer.cast(), len) } {
        // SAFETY: as above. The stream has outlived its sandbox, or belongs to a real section.
        let bytes = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
        if !hermetic_sys::clock::entropy(bytes) {
            return -1;
        }
    }
    len as ssize_t
}

/// # Safety
/// Non-null arguments are C strings.
unsafe fn random_stream(path: *const c_char, mode: *const c_char) -> Option<*mut FILE> {
    if path.is_null() || mode.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    if !descriptors::is_random_device(unsafe { CStr::from_ptr(path) }.to_bytes()) {
        return None;
    }
    if Call::enter()?.sandbox.entropy_mode() == Mode::Off {
        return None;
    }
    let functions = Functions { read: Some(read_random), write: None, seek: None, close: None };
    // SAFETY: the functions match glibc's types, and there is no cookie to keep alive.
    let stream = unsafe { fopencookie(core::ptr::null_mut(), mode, functions) };
    (!stream.is_null()).then_some(stream)
}

pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's promise to libc.
    match unsafe { random_stream(path, mode) } {
        Some(stream) => stream,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::fopen(path, mode) },
    }
}

pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's promise to libc.
    match unsafe { random_stream(path, mode) } {
        Some(stream) => stream,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::fopen64(path, mode) },
    }
}
