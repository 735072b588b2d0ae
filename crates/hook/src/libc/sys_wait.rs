//! `<sys/wait.h>`: waiting for children. While one waits, the others go on.

use crate::parking;
use crate::table::hooks;
use core::ffi::c_int;
use hermetic_journal::WaitKind;
use libc::{id_t, idtype_t, pid_t, rusage, siginfo_t};

hooks! {
    wait(status: *mut c_int) -> pid_t;
    wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t;
    wait4(process: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t;
    waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t;
    waitid(kind: idtype_t, process: id_t, info: *mut siginfo_t, options: c_int) -> c_int;
}

/// Runs a call that waits unless the options say otherwise. `wait` takes the options to use; `is_done` says whether its result
/// is more than "not yet".
fn waiting<R>(options: c_int, wait: impl Fn(c_int) -> R, is_done: impl Fn(&R) -> bool) -> R {
    if options & libc::WNOHANG != 0 {
        return wait(options);
    }
    parking::in_kernel(WaitKind::Other, || Some(wait(options | libc::WNOHANG)).filter(&is_done), || wait(options))
}

/// Notes that a child was told to have ended: its threads are out of the table from now on.
fn note(process: pid_t) -> pid_t {
    if process > 0 {
        parking::process_ended(process);
    }
    process
}

fn is_told(process: &pid_t) -> bool {
    *process != 0
}

pub unsafe extern "C" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: the argument is the program's.
    unsafe { waitpid(-1, status, 0) }
}

pub unsafe extern "C" fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the arguments are the program's.
    unsafe { wait4(-1, status, options, usage) }
}

pub unsafe extern "C" fn wait4(process: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
    // SAFETY: the arguments are the program's.
    note(waiting(options, |options| unsafe { real::wait4(process, status, options, usage) }, is_told))
}

pub unsafe extern "C" fn waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: the arguments are the program's.
    note(waiting(options, |options| unsafe { real::waitpid(process, status, options) }, is_told))
}

pub unsafe extern "C" fn waitid(kind: idtype_t, process: id_t, info: *mut siginfo_t, options: c_int) -> c_int {
    if info.is_null() {
        // Nothing tells "not yet" from "done" here.
        // SAFETY: the arguments are the program's.
        return unsafe { real::waitid(kind, process, info, options) };
    }
    let call = |options: c_int| {
        // SAFETY: not null, and the program's structure.
        unsafe { (*info).si_signo = 0 };
        // SAFETY: the arguments are the program's.
        unsafe { real::waitid(kind, process, info, options) }
    };
    // SAFETY: not null, and the program's structure.
    waiting(options, call, |result| *result != 0 || unsafe { (*info).si_signo } != 0)
}
