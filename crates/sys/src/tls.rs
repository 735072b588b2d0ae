//! One machine word per thread, read without a call.
//!
//! `thread_local!` in a library that was opened at run time goes through `__tls_get_addr`, which may allocate on a thread's
//! first access; hooks must not allocate (invariant H2). So the word lives in static TLS with the initial-exec model, which
//! glibc grants to late-opened libraries from a small reserve, and a few instructions read it. The model is what
//! `-ftls-model=initial-exec` gives to C; see "ELF Handling For Thread-Local Storage" (Drepper), section 4.3.

use core::arch::{asm, global_asm};

/// What every thread carries. All zero in a thread that has not been seen yet.
#[repr(C)]
#[derive(Debug)]
pub struct Local {
    /// The thread's record, or null.
    pub thread: *mut core::ffi::c_void,
    /// How many reasons there are to answer with the real thing: inside a hook, or inside a `real` section.
    pub bypass: u32,
    /// The thread is about to do something that a later call of the same thread wants to know of.
    pub mark: u32,
    /// The thread's number for the kernel, or 0 where nobody has asked; see `task::known_id`.
    pub kernel_id: i32,
    /// While the thread watches itself give the interpreter's lock away: how many of its mutexes it holds, plus one; else 0.
    pub watched: u32,
}

const _: () = assert!(size_of::<Local>() <= 32, "the size of `hermetic_local` below");

global_asm!(
    ".pushsection .tbss.hermetic_local,\"awT\",@nobits",
    ".p2align 4",
    ".globl hermetic_local",
    ".hidden hermetic_local",
    ".type hermetic_local,@tls_object",
    ".size hermetic_local,32",
    "hermetic_local:",
    ".zero 32",
    ".popsection",
);

/// The calling thread's record. Valid for the life of the thread; only the calling thread may use it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn local() -> *mut Local {
    let address: *mut Local;
    // SAFETY: reads the thread pointer and this library's own TLS offset (invariant H2); no memory is written.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + hermetic_local@gottpoff]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    address
}

/// The calling thread's record. Valid for the life of the thread; only the calling thread may use it.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn local() -> *mut Local {
    let address: *mut Local;
    // SAFETY: reads the thread pointer and this library's own TLS offset (invariant H2); no memory is written.
    unsafe {
        asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:hermetic_local",
            "ldr {1}, [{1}, :gottprel_lo12:hermetic_local]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    address
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn each_thread_has_its_own_zeroed_word() {
        let here = local() as usize;
        assert_eq!(here, local() as usize);
        let there = std::thread::spawn(|| {
            let word = local();
            // SAFETY: the record belongs to this thread and lives as long as it.
            let first = unsafe { (*word).bypass };
            (word as usize, first)
        })
        .join()
        .expect("the thread only reads");
        assert_ne!(here, there.0);
        assert_eq!(there.1, 0);
    }
}
