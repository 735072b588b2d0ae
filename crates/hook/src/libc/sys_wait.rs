//! `<sys/wait.h>`: waiting for children. While one waits, the others go on.

use crate::parking;
use crate::table::hooks;
use core::ffi::c_int;
use libc::{id_t, idtype_t, pid_t, rusage, siginfo_t};

hooks! {
    wait(status: *mut c_int) -> pid_t;
    wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t;
    wait4(process: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t;
    waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t;
    waitid(kind: idtype_t, process: id_t, info: *mut siginfo_t, options: c_int) -> c_int;
}

/// Runs a call that waits unless the options say otherwise.
fn waiting<R>(options: c_int, wait: impl FnOnce() -> R) -> R {
    if options & libc::WNOHANG != 0 {
        return wait();
    }
    parking::in_kernel(wait)
}

pub unsafe extern "C" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: the argument is the program's.
    waiting(0, || unsafe { real::wait(status) })
}

pub unsafe extern "C" fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the arguments are the program's.
    waiting(options, || unsafe { real::wait3(status, options, usage) })
}

pub unsafe extern "C" fn wait4(process: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the arguments are the program's.
    waiting(options, || unsafe { real::wait4(process, status, options, usage) })
}

pub unsafe extern "C" fn waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: the arguments are the program's.
    waiting(options, || unsafe { real::waitpid(process, status, options) })
}

pub unsafe extern "C" fn waitid(kind: idtype_t, process: id_t, info: *mut siginfo_t, options: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    waiting(options, || unsafe { real::waitid(kind, process, info, options) })
}
