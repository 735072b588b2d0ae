//! `<dlfcn.h>`: objects that come later, and names that are asked for at run time.
//!
//! glibc finds out who calls `dlopen` and `dlsym` from the return address (`$ORIGIN`, run paths, `RTLD_NEXT`), so these two
//! are left by a jump, not a call: the real function then returns to the program. What we have to do, we do before. Objects
//! that a `dlopen` brings are looked at when the first name is asked of them.

use crate::table::hooks;
use crate::{attach, guard};
use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void, CStr};

hooks! {
    dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
}

/// The answer to `dlsym`, or null for "ask the real one".
unsafe extern "C" fn answer(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    guard::real_begin();
    attach::scan();
    // SAFETY: the program's arguments.
    let hook = unsafe { hook_for(handle, name) };
    guard::real_end();
    hook
}

/// # Safety
/// As for `dlsym`.
unsafe fn hook_for(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // Whoever asks for the next one is about to wrap it, and must get the real one to wrap.
    if name.is_null() || handle == libc::RTLD_NEXT {
        return core::ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    let Some(hook) = attach::hook_of(unsafe { CStr::from_ptr(name) }.to_bytes()) else { return core::ptr::null_mut() };
    // SAFETY: the program's arguments. The caller matters only for RTLD_NEXT and for objects with scopes of their own,
    // which have no reason to define these names.
    let real = unsafe { real::dlsym(handle, name) };
    if real as usize == hook.real.address() {
        hook.function.0.cast_mut().cast()
    } else {
        real
    }
}

/// The real function's address, for the jump.
extern "C" fn real_dlsym() -> usize {
    real::dlsym::ADDRESS.address()
}

extern "C" fn real_dlopen() -> usize {
    // Objects loaded by earlier calls are due now; this call's are due at the next name that is asked for.
    guard::real_begin();
    attach::scan();
    guard::real_end();
    real::dlopen::ADDRESS.address()
}

/// # Safety
/// As for libc's `dlsym`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {answer}",
        "test rax, rax",
        "jnz 2f",
        "call {real}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        "2:",
        "add rsp, 24",
        "ret",
        answer = sym answer,
        real = sym real_dlsym,
    )
}

/// # Safety
/// As for libc's `dlopen`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {real}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        real = sym real_dlopen,
    )
}

/// # Safety
/// As for libc's `dlsym`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {answer}",
        "cbnz x0, 2f",
        "bl {real}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        "2:",
        "ldp x29, x30, [sp], #32",
        "ret",
        answer = sym answer,
        real = sym real_dlsym,
    )
}

/// # Safety
/// As for libc's `dlopen`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {real}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        real = sym real_dlopen,
    )
}
