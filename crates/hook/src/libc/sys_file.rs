//! `<sys/file.h>` and `lockf`: locks on files. While one waits, the others go on.

use crate::parking;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use hermetic_sys::clock::errno;
use libc::off64_t;

hooks! {
    flock(fd: c_int, operation: c_int) -> c_int;
    lockf(fd: c_int, command: c_int, len: off64_t) -> c_int;
    lockf64(fd: c_int, command: c_int, len: off64_t) -> c_int;
}

/// The result of a call that was asked not to wait; none where it would have had to.
pub fn told(result: c_int) -> Option<c_int> {
    (result == 0 || !matches!(errno(), libc::EWOULDBLOCK | libc::EACCES)).then_some(result)
}

pub unsafe extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let call = |more: c_int| unsafe { real::flock(fd, operation | more) };
    if operation & (libc::LOCK_NB | libc::LOCK_UN) != 0 {
        return call(0);
    }
    parking::in_kernel(WaitKind::Other, || told(call(libc::LOCK_NB)), || call(0))
}

pub unsafe extern "C" fn lockf(fd: c_int, command: c_int, len: off64_t) -> c_int {
    // SAFETY: the arguments are the program's.
    let call = |command: c_int| unsafe { real::lockf(fd, command, len) };
    match command {
        libc::F_LOCK => parking::in_kernel(WaitKind::Other, || told(call(libc::F_TLOCK)), || call(command)),
        _ => call(command),
    }
}

pub unsafe extern "C" fn lockf64(fd: c_int, command: c_int, len: off64_t) -> c_int {
    // SAFETY: the arguments are the program's; on these machines both names have one signature.
    unsafe { lockf(fd, command, len) }
}
