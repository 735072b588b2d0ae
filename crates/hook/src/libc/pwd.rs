//! `<pwd.h>`: the home directory of the user that runs this process is the throwaway one, while a floor says so.
//!
//! Other users' entries are theirs. The text that an entry points to lives for ever, so that a kept entry stays valid.

use crate::floor;
use crate::table::hooks;
use core::ffi::{c_char, c_int};
use libc::{passwd, size_t, uid_t};

hooks! {
    getpwuid(uid: uid_t) -> *mut passwd;
    getpwnam(name: *const c_char) -> *mut passwd;
    getpwent() -> *mut passwd;
    getpwuid_r(
        uid: uid_t, entry: *mut passwd, buffer: *mut c_char, len: size_t, out: *mut *mut passwd
    ) -> c_int;
    getpwnam_r(
        name: *const c_char, entry: *mut passwd, buffer: *mut c_char, len: size_t, out: *mut *mut passwd
    ) -> c_int;
}

/// Moves the home directory of an entry, if it is this user's.
///
/// # Safety
/// `entry` is null or an entry of libc's.
unsafe fn move_home(entry: *mut passwd) -> *mut passwd {
    let home = floor::home();
    if home.is_null() {
        return entry;
    }
    // SAFETY: the caller's promise.
    let Some(own) = (unsafe { entry.as_mut() }) else { return entry };
    // SAFETY: no preconditions.
    if own.pw_uid == unsafe { libc::getuid() } {
        own.pw_dir = home;
    }
    entry
}

pub unsafe extern "C" fn getpwuid(uid: uid_t) -> *mut passwd {
    // SAFETY: the argument is the program's.
    let entry = unsafe { real::getpwuid(uid) };
    // SAFETY: libc's answer.
    unsafe { move_home(entry) }
}

pub unsafe extern "C" fn getpwnam(name: *const c_char) -> *mut passwd {
    // SAFETY: the argument is the program's.
    let entry = unsafe { real::getpwnam(name) };
    // SAFETY: libc's answer.
    unsafe { move_home(entry) }
}

pub unsafe extern "C" fn getpwent() -> *mut passwd {
    // SAFETY: no arguments.
    let entry = unsafe { real::getpwent() };
    // SAFETY: libc's answer.
    unsafe { move_home(entry) }
}

/// # Safety
/// As for the reentrant functions' last argument, after success.
unsafe fn move_home_of(result: c_int, out: *mut *mut passwd) {
    if result == 0 && !out.is_null() {
        // SAFETY: libc put its answer there.
        let entry = unsafe { *out };
        // SAFETY: libc's answer, or null.
        unsafe { move_home(entry) };
    }
}

pub unsafe extern "C" fn getpwuid_r(
    uid: uid_t,
    entry: *mut passwd,
    buffer: *mut c_char,
    len: size_t,
    out: *mut *mut passwd,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::getpwuid_r(uid, entry, buffer, len, out) };
    // SAFETY: the program's pointer.
    unsafe { move_home_of(result, out) };
    result
}

pub unsafe extern "C" fn getpwnam_r(
    name: *const c_char,
    entry: *mut passwd,
    buffer: *mut c_char,
    len: size_t,
    out: *mut *mut passwd,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::getpwnam_r(name, entry, buffer, len, out) };
    // SAFETY: the program's pointer.
    unsafe { move_home_of(result, out) };
    result
}
