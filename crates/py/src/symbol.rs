//! Finds functions of the interpreter that exist but are outside the stable ABI: by name, once, and never as a hard need.

#![allow(unsafe_code)]

use core::ffi::{c_void, CStr};

/// The address of `name` in this process, if any loaded object exports it.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is NUL-terminated; the call only searches symbol tables.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// A function pointer of the given type, found by name: `function!(c"PyGILState_Check", extern "C" fn() -> c_int)`.
macro_rules! function {
    ($name:expr, $type:ty) => {
        crate::symbol::find($name).map(|address| {
            // SAFETY: the library that exports this symbol documents it with this signature.
            unsafe { core::mem::transmute::<*mut core::ffi::c_void, $type>(address) }
        })
    };
}
pub(crate) use function;
