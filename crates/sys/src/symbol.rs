//! Looking up what a name means in this process. Only while attaching, never inside a hook (invariant H3).

use core::ffi::{c_void, CStr};

/// The address that an ordinary reference to `name` resolves to in the global scope: libc's function, or that of a library
/// which was preloaded in front of it. `None` where this libc does not have it.
pub fn global(name: &CStr) -> Option<usize> {
    // SAFETY: the name is a C string; RTLD_DEFAULT needs no handle.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

/// As [`global`], in one library that must be loaded already, for example `libcrypto.so.3`.
pub fn in_library(library: &CStr, name: &CStr) -> Option<usize> {
    // SAFETY: RTLD_NOLOAD only finds what is there; the count is given back below.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is live and the name a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: gives back the reference taken above; the library stays loaded by its other users.
    unsafe { libc::dlclose(handle) };
    (!address.is_null()).then_some(address as usize)
}

/// The load address of the object that contains `address`, and whether there is one.
pub fn object_base(address: usize) -> Option<usize> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is valid for writing; any address may be asked for.
    let found = unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) };
    // SAFETY: zeroed or filled; all fields are pointers that may be null.
    let info = unsafe { info.assume_init() };
    (found != 0).then_some(info.dli_fbase as usize)
}

/// The file that the object containing `address` was loaded from.
pub fn object_path(address: usize) -> Option<String> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is valid for writing; any address may be asked for.
    let found = unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) };
    // SAFETY: zeroed or filled; all fields are pointers that may be null.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's name of a loaded object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_str().ok()?;
    match std::fs::canonicalize(name) {
        Ok(path) => path.into_os_string().into_string().ok(),
        // A file in memory has no name of its own, but can be opened where it was opened from.
        Err(_) => (name.starts_with('/') && std::fs::metadata(name).is_ok()).then(|| name.to_owned()),
    }
}

/// Version of the running glibc, for example `(2, 36)`. `None` under another libc.
pub fn glibc_version() -> Option<(u32, u32)> {
    let address = global(c"gnu_get_libc_version")?;
    type Version = unsafe extern "C" fn() -> *const core::ffi::c_char;
    // SAFETY: the symbol is glibc's, whose type this is.
    let version: Version = unsafe { core::mem::transmute::<usize, Version>(address) };
    // SAFETY: no arguments, no preconditions.
    let text = unsafe { version() };
    // SAFETY: glibc returns a static C string.
    let text = unsafe { CStr::from_ptr(text) }.to_str().ok()?;
    let (major, minor) = text.split_once('.')?;
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
