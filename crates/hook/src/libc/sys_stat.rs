//! `<sys/stat.h>`: file times that agree with the clock inside.
//!
//! What is written inside a sandbox carries the kernel's real time on disk. Where the program looks, the stamp becomes the
//! virtual moment at which the file was written.

use crate::guard::Call;
use crate::table::hooks;
use core::ffi::{c_char, c_int, c_uint};
use hermetic_model::clock;
use libc::{stat64 as Stat, statx as Statx, statx_timestamp};

hooks! {
    stat(path: *const c_char, out: *mut Stat) -> c_int;
    stat64(path: *const c_char, out: *mut Stat) -> c_int;
    lstat(path: *const c_char, out: *mut Stat) -> c_int;
    lstat64(path: *const c_char, out: *mut Stat) -> c_int;
    fstat(fd: c_int, out: *mut Stat) -> c_int;
    fstat64(fd: c_int, out: *mut Stat) -> c_int;
    fstatat(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    fstatat64(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    __xstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    __xstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    __lxstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    __lxstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    __fxstat(version: c_int, fd: c_int, out: *mut Stat) -> c_int;
    __fxstat64(version: c_int, fd: c_int, out: *mut Stat) -> c_int;
    __fxstatat(version: c_int, folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    __fxstatat64(version: c_int, folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut Statx) -> c_int;
}

/// Turns a stamp into the virtual moment of its writing.
fn turn(call: &Call, seconds: &mut i64, nanos: &mut i64) {
    if let Some(real_ns) = clock::from_timespec(*seconds, *nanos) {
        (*seconds, *nanos) = clock::to_timespec(call.sandbox.file_time(real_ns));
    }
}

/// # Safety
/// After a `result` of 0, `out` points to a filled structure.
unsafe fn note(result: c_int, out: *mut Stat) -> c_int {
    if result != 0 {
        return result;
    }
    let Some(call) = Call::enter() else { return result };
    // SAFETY: the caller's promise. The `64` names have the same structure on 64-bit machines.
    if let Some(out) = unsafe { out.as_mut() } {
        turn(&call, &mut out.st_atime, &mut out.st_atime_nsec);
        turn(&call, &mut out.st_mtime, &mut out.st_mtime_nsec);
        turn(&call, &mut out.st_ctime, &mut out.st_ctime_nsec);
    }
    result
}

pub unsafe extern "C" fn stat(path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::stat(path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn stat64(path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::stat64(path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn lstat(path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::lstat(path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn lstat64(path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::lstat64(path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn fstat(fd: c_int, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fstat(fd, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn fstat64(fd: c_int, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fstat64(fd, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn fstatat(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fstatat(folder, path, out, flags) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn fstatat64(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fstatat64(folder, path, out, flags) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __xstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__xstat(version, path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __xstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__xstat64(version, path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __lxstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__lxstat(version, path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __lxstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__lxstat64(version, path, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __fxstat(version: c_int, fd: c_int, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__fxstat(version, fd, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __fxstat64(version: c_int, fd: c_int, out: *mut Stat) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__fxstat64(version, fd, out) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __fxstatat(
    version: c_int,
    folder: c_int,
    path: *const c_char,
    out: *mut Stat,
    flags: c_int,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__fxstatat(version, folder, path, out, flags) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

pub unsafe extern "C" fn __fxstatat64(
    version: c_int,
    folder: c_int,
    path: *const c_char,
    out: *mut Stat,
    flags: c_int,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::__fxstatat64(version, folder, path, out, flags) };
    // SAFETY: libc filled the structure if it says so.
    unsafe { note(result, out) }
}

fn turn_stamp(call: &Call, stamp: &mut statx_timestamp) {
    let (mut seconds, mut nanos) = (stamp.tv_sec, i64::from(stamp.tv_nsec));
    turn(call, &mut seconds, &mut nanos);
    stamp.tv_sec = seconds;
    stamp.tv_nsec = nanos as u32;
}

pub unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    out: *mut Statx,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::statx(folder, path, flags, mask, out) };
    if result != 0 {
        return result;
    }
    let Some(call) = Call::enter() else { return result };
    // SAFETY: libc filled the structure, as it says.
    if let Some(out) = unsafe { out.as_mut() } {
        turn_stamp(&call, &mut out.stx_atime);
        turn_stamp(&call, &mut out.stx_mtime);
        turn_stamp(&call, &mut out.stx_ctime);
        turn_stamp(&call, &mut out.stx_btime);
    }
    result
}
