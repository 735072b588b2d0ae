//! `<sys/random.h>`: the kernel's entropy.

use crate::guard::Call;
use crate::host::Registered;
use crate::table::hooks;
use core::ffi::{c_int, c_uint, c_void};
use hermetic_journal::Source;
use hermetic_sys::clock as kernel;
use libc::{size_t, ssize_t};

hooks! {
    getrandom(buffer: *mut c_void, len: size_t, flags: c_uint) -> ssize_t;
    getentropy(buffer: *mut c_void, len: size_t) -> c_int;
}

/// Longest request that `getentropy` accepts, by its documentation.
const GETENTROPY_MAX: size_t = 256;
/// `GRND_INSECURE`, since Linux 5.6: bytes even before the kernel's generator is ready.
const GRND_INSECURE: c_uint = 4;

/// Fills the program's buffer; false where the call is not part of a sandbox, and where nothing is asked for: some libraries try
/// once in a process whether the call works, which is nothing for a journal.
///
/// # Safety
/// `buffer` is valid for writing `len` bytes.
pub unsafe fn fill(source: Source, buffer: *mut c_void, len: size_t) -> bool {
    if buffer.is_null() || len == 0 {
        return false;
    }
    let Some(mut call) = Call::enter() else { return false };
    // SAFETY: the caller's promise; written, never read, so it need not be initialised as far as the engine goes.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
    let (sandbox, thread) = call.parts();
    sandbox.fill(thread, &Registered, source, bytes, kernel::entropy)
}

pub unsafe extern "C" fn getrandom(buffer: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    let is_valid = flags & !(libc::GRND_NONBLOCK | libc::GRND_RANDOM | GRND_INSECURE) == 0;
    // SAFETY: the program's promise to libc.
    if is_valid && unsafe { fill(Source::Getrandom, buffer, len) } {
        return len as ssize_t;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::getrandom(buffer, len, flags) }
}

pub unsafe extern "C" fn getentropy(buffer: *mut c_void, len: size_t) -> c_int {
    // SAFETY: the program's promise to libc.
    if len <= GETENTROPY_MAX && unsafe { fill(Source::Getentropy, buffer, len) } {
        return 0;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::getentropy(buffer, len) }
}
