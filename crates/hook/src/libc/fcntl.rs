//! `<fcntl.h>`: opening random devices, waiting for locks on files.
//!
//! The device is really opened, so that everything else about the descriptor is true; only what is read from it is ours.

use super::sys_file::told;
use crate::table::hooks;
use crate::{descriptors, guard, parking};
use core::ffi::{c_char, c_int, c_uint, CStr};
use hermetic_journal::WaitKind;

// `mode`, and the argument of `fcntl`, is variadic in C; on the machines that we know it travels in the same register either way.
hooks! {
    open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    __open_2(path: *const c_char, flags: c_int) -> c_int;
    __open64_2(path: *const c_char, flags: c_int) -> c_int;
    __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int;
    __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;
}

/// # Safety
/// A non-null `path` is a C string.
unsafe fn note(fd: c_int, path: *const c_char) -> c_int {
    if fd < 0 || path.is_null() || guard::active().is_none() || crate::fork::is_borrowed() {
        return fd;
    }
    // SAFETY: the caller's promise.
    if descriptors::is_random_device(unsafe { CStr::from_ptr(path) }.to_bytes()) {
        descriptors::set_random(fd);
    }
    fd
}

pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::open(path, flags, mode) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::open64(path, flags, mode) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::openat(folder, path, flags, mode) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::openat64(folder, path, flags, mode) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::__open_2(path, flags) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::__open64_2(path, flags) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::__openat_2(folder, path, flags) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

pub unsafe extern "C" fn __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::__openat64_2(folder, path, flags) };
    // SAFETY: the program's promise to libc.
    unsafe { note(fd, path) }
}

/// Runs a command; one that waits for a lock is tried first, and the others go on while it waits.
fn locking(command: c_int, call: impl Fn(c_int) -> c_int) -> c_int {
    let impatient = match command {
        libc::F_SETLKW => libc::F_SETLK,
        libc::F_OFD_SETLKW => libc::F_OFD_SETLK,
        _ => return call(command),
    };
    parking::in_kernel(WaitKind::Other, || told(call(impatient)), || call(command))
}

pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the arguments are the program's.
    locking(command, |command| unsafe { real::fcntl(fd, command, argument) })
}

pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the arguments are the program's.
    locking(command, |command| unsafe { real::fcntl64(fd, command, argument) })
}
