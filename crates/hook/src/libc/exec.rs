//! `<unistd.h>` and `<spawn.h>`: programs that are started take part in the sandbox of the thread that starts them.
//!
//! The caller may be a child of vfork, in its parent's memory: nothing is allocated, and the engine's call is over before the
//! program is replaced (which never returns).

use crate::inherit::Variables;
use crate::parking;
use crate::table::hooks;
use core::ffi::{c_char, c_int, c_void};
use hermetic_journal::WaitKind;
use libc::{pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

type Strings = *const *const c_char;

hooks! {
    execve(path: *const c_char, arguments: Strings, variables: Strings) -> c_int;
    execv(path: *const c_char, arguments: Strings) -> c_int;
    execvp(file: *const c_char, arguments: Strings) -> c_int;
    execvpe(file: *const c_char, arguments: Strings, variables: Strings) -> c_int;
    fexecve(fd: c_int, arguments: Strings, variables: Strings) -> c_int;
    execveat(folder: c_int, path: *const c_char, arguments: Strings, variables: Strings, flags: c_int) -> c_int;
    posix_spawn(
        process: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t, arguments: Strings, variables: Strings
    ) -> c_int;
    posix_spawnp(
        process: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t, arguments: Strings, variables: Strings
    ) -> c_int;
    system(command: *const c_char) -> c_int;
    popen(command: *const c_char, mode: *const c_char) -> *mut c_void;
}

extern "C" {
    static mut environ: Strings;
}

/// Where libc keeps the program's own environment.
fn place() -> *mut Strings {
    &raw mut environ
}

/// The program's own environment.
fn own() -> Strings {
    // SAFETY: libc's pointer; who changes the environment meanwhile breaks the program's own calls as well.
    unsafe { place().read() }
}

/// Runs a call of libc that starts a program with the process's own environment.
fn with_own<R>(start: impl FnOnce() -> R) -> R {
    let mut room = Variables::new();
    let before = own();
    // SAFETY: libc's environment.
    let variables = unsafe { room.for_child(before) };
    // SAFETY: libc's pointer, put back below; `room` outlives the call.
    unsafe { place().write(variables) };
    let result = start();
    if own() == variables {
        // SAFETY: as above.
        unsafe { place().write(before) };
    }
    result
}

pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, variables: Strings) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::execve(path, arguments, variables) }
}

pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the arguments are the program's; the environment is its own.
    unsafe { execve(path, arguments, own()) }
}

pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the arguments are the program's; the environment is its own.
    unsafe { execvpe(file, arguments, own()) }
}

pub unsafe extern "C" fn execvpe(file: *const c_char, arguments: Strings, variables: Strings) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::execvpe(file, arguments, variables) }
}

pub unsafe extern "C" fn fexecve(fd: c_int, arguments: Strings, variables: Strings) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::fexecve(fd, arguments, variables) }
}

pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: Strings,
    variables: Strings,
    flags: c_int,
) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::execveat(folder, path, arguments, variables, flags) }
}

pub unsafe extern "C" fn posix_spawn(
    process: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::posix_spawn(process, path, actions, attributes, arguments, variables) }
}

pub unsafe extern "C" fn posix_spawnp(
    process: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    let mut room = Variables::new();
    // SAFETY: the program's promise to libc.
    let variables = unsafe { room.for_child(variables) };
    // SAFETY: the program's arguments, and its environment with ours in it.
    unsafe { real::posix_spawnp(process, file, actions, attributes, arguments, variables) }
}

pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: the argument is the program's.
    with_own(|| parking::in_kernel(WaitKind::Other, || None, || unsafe { real::system(command) }))
}

pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: the arguments are the program's.
    with_own(|| unsafe { real::popen(command, mode) })
}
