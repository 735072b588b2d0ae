//! OpenSSL keeps a generator of its own: seeding the kernel's entropy does not reach it.
//!
//! While a sandbox with seeded entropy is entered, libcrypto's RAND method is ours; it is put back when the last one is left.
//! A libcrypto that was linked statically into another library is out of reach, which `doctor` says.

use crate::libc::sys_random::fill;
use core::ffi::{c_double, c_int, c_uchar, c_void};
use hermetic_journal::Source;
use hermetic_sys::symbol;
use std::sync::{Mutex, MutexGuard};

/// OpenSSL's `RAND_METHOD`.
#[repr(C)]
struct Method {
    seed: Option<unsafe extern "C" fn(*const c_void, c_int) -> c_int>,
    bytes: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    cleanup: Option<unsafe extern "C" fn()>,
    add: Option<unsafe extern "C" fn(*const c_void, c_int, c_double) -> c_int>,
    pseudorand: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    status: Option<unsafe extern "C" fn() -> c_int>,
}

static OURS: Method = Method {
    seed: Some(take_seed),
    bytes: Some(give_bytes),
    cleanup: None,
    add: Some(take_more),
    pseudorand: Some(give_bytes),
    status: Some(is_ready),
};

unsafe extern "C" fn take_seed(_buffer: *const c_void, _len: c_int) -> c_int {
    1
}

unsafe extern "C" fn take_more(_buffer: *const c_void, _len: c_int, _entropy: c_double) -> c_int {
    1
}

unsafe extern "C" fn is_ready() -> c_int {
    1
}

unsafe extern "C" fn give_bytes(buffer: *mut c_uchar, len: c_int) -> c_int {
    let Ok(len) = usize::try_from(len) else { return 0 };
    // SAFETY: OpenSSL's promise: the buffer has that many bytes.
    if unsafe { fill(Source::Openssl, buffer.cast(), len) } {
        return 1;
    }
    if buffer.is_null() {
        return 0;
    }
    // SAFETY: as above. A thread that is no part of the sandbox gets real bytes.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer, len) };
    c_int::from(hermetic_sys::clock::entropy(bytes))
}

type Get = unsafe extern "C" fn() -> *const Method;
type Set = unsafe extern "C" fn(*const Method) -> c_int;

/// One libcrypto of this process.
struct Library {
    get: Get,
    set: Set,
    /// Its method before ours, while ours is in place.
    before: Option<usize>,
}

#[derive(Default)]
pub struct State {
    generation: (u64, u64),
    libraries: Vec<Library>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// This file's lock.
#[allow(dead_code, reason = "held, not read")]
pub struct Held(MutexGuard<'static, Option<State>>);

/// Holds the lock, so that a fork does not copy it half-way.
pub fn lock() -> Held {
    Held(STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

const NAMES: [&core::ffi::CStr; 2] = [c"libcrypto.so.3", c"libcrypto.so.1.1"];

/// Puts our method in place (`is_seeded`) or the former one back. Not for hooks.
pub fn switch(is_seeded: bool) {
    let mut guard = STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let state = guard.get_or_insert_with(State::default);
    if is_seeded {
        let generation = hermetic_sys::objects::generation();
        if generation != state.generation {
            state.generation = generation;
            state.libraries.extend(find(state.libraries.len()));
        }
    }
    for library in &mut state.libraries {
        match (is_seeded, library.before) {
            (true, None) => {
                // SAFETY: libcrypto's function, which has no preconditions.
                let before = unsafe { (library.get)() };
                // SAFETY: a method that lives for ever.
                if unsafe { (library.set)(&OURS) } == 1 {
                    library.before = Some(before as usize);
                }
            }
            (false, Some(before)) => {
                // SAFETY: libcrypto's own method from before.
                unsafe { (library.set)(before as *const Method) };
                library.before = None;
            }
            _ => {}
        }
    }
}

fn find(known: usize) -> Vec<Library> {
    let look = |name: &&core::ffi::CStr| {
        let get = symbol::in_library(name, c"RAND_get_rand_method")?;
        let set = symbol::in_library(name, c"RAND_set_rand_method")?;
        Some(Library {
            // SAFETY: libcrypto's function of that name, whose type this is.
            get: unsafe { core::mem::transmute::<usize, Get>(get) },
            // SAFETY: as above.
            set: unsafe { core::mem::transmute::<usize, Set>(set) },
            before: None,
        })
    };
    // A process has one libcrypto of each name and never unloads it in practice.
    NAMES.iter().filter(|name| hermetic_sys::objects::is_loaded(name)).filter_map(look).skip(known).collect()
}
