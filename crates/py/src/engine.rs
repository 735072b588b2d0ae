//! Opens the one engine of this process and keeps its function table.
//!
//! An engine that is already here (preloaded, or brought by another front end) is used as it is; otherwise the
//! `libhermetic.so` beside this library is opened. Deciding anything about sandboxes is left to the callers.

#![allow(unsafe_code)]

use core::ffi::{c_void, CStr};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hermetic_abi::{Api, Host, Slice, Text, ABI_VERSION, SYMBOL};

use crate::{host, symbol};

/// glibc older than this lacks what the engine's relocation walk relies on.
const GLIBC_OLDEST: (u32, u32) = (2, 31);

static ENGINE: OnceLock<Result<&'static Api, String>> = OnceLock::new();
static ATTACHED: OnceLock<Result<(), String>> = OnceLock::new();

/// The engine's functions, or why there are none, as a sentence for users.
pub fn api() -> Result<&'static Api, &'static str> {
    ENGINE.get_or_init(open).as_ref().copied().map_err(String::as_str)
}

/// The engine with its hooks in place. The first call rewrites the relocation slots of the process.
pub fn attached() -> Result<&'static Api, &'static str> {
    let api = api()?;
    ATTACHED.get_or_init(|| attach(api)).as_ref().map_err(String::as_str)?;
    Ok(api)
}

/// Borrows bytes for one call into the engine.
pub fn slice(bytes: &[u8]) -> Slice {
    Slice::of(bytes)
}

/// Borrows bytes that may be absent.
pub fn slice_or_absent(bytes: Option<&[u8]>) -> Slice {
    bytes.map_or(Slice::ABSENT, Slice::of)
}

fn attach(api: &'static Api) -> Result<(), String> {
    let mut error = Text::new();
    let host: &'static Host = host::adapter();
    // SAFETY: `host` is static and complete, `error` outlives the call.
    let status = unsafe { (api.attach)(host, &raw mut error) };
    if status < 0 {
        return Err(format!("the engine cannot attach to this process: {}", error.as_str()));
    }
    Ok(())
}

fn open() -> Result<&'static Api, String> {
    check_platform()?;
    if let Some(address) = symbol::find(SYMBOL) {
        return handshake(address, "the engine that this process already has");
    }
    let path = folder()?.join("libhermetic.so");
    let text =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| "the path of libhermetic.so has a NUL".to_owned())?;
    // SAFETY: `text` is NUL-terminated; the library's initialisers are our own and touch nothing of the caller.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        return Err(format!("cannot open {}: {}", path.display(), last_dl_error()));
    }
    // SAFETY: `handle` is open and stays open for the life of the process.
    let address = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
    if address.is_null() {
        return Err(format!("{} is not Hermetic's engine: it lacks the symbol {}", path.display(), symbol_name()));
    }
    handshake(address, &path.display().to_string())
}

fn symbol_name() -> &'static str {
    SYMBOL.to_str().unwrap_or("hermetic_abi")
}

fn handshake(address: *mut c_void, origin: &str) -> Result<&'static Api, String> {
    // SAFETY: the symbol is a function without arguments in every version of the ABI.
    let table = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> *const Api>(address) };
    let api = table();
    if api.is_null() {
        return Err(format!("{origin} gave no function table; reinstall hermetic-sandbox"));
    }
    // SAFETY: `abi_version` is the first field of every version of the table.
    let found = unsafe { api.cast::<u32>().read() };
    if found != ABI_VERSION {
        return Err(format!(
            "{origin} speaks version {found} of the engine interface, this package needs {ABI_VERSION}; \
             install matching releases of everything that brings Hermetic into this process"
        ));
    }
    // SAFETY: the version matches, so the table has the layout that this crate was compiled with.
    let api: &'static Api = unsafe { &*api };
    // SAFETY: `version` is NUL-terminated static text by contract.
    let release = unsafe { CStr::from_ptr(api.version) }.to_string_lossy();
    if release != env!("HERMETIC_VERSION") {
        return Err(format!(
            "{origin} is release {release}, this package is {}; install matching releases",
            env!("HERMETIC_VERSION")
        ));
    }
    Ok(api)
}

/// The directory that this library was loaded from. The engine and the supervisor's program lie in it.
pub fn folder() -> Result<PathBuf, String> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let inside = folder as *const c_void;
    // SAFETY: `info` is writable and `inside` an address of this library.
    let found = unsafe { libc::dladdr(inside, info.as_mut_ptr()) };
    if found == 0 {
        return Err("cannot tell where hermetic._native was loaded from".to_owned());
    }
    // SAFETY: zeroed is a valid value, and the call has filled it.
    let info = unsafe { info.assume_init() };
    // SAFETY: after success `dli_fname` is NUL-terminated text that lives as long as this library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let own = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let folder = own.parent().unwrap_or(Path::new("."));
    // An absolute path keeps working after a chdir.
    Ok(std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf()))
}

fn last_dl_error() -> String {
    // SAFETY: returns a thread's last error text or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown reason".to_owned();
    }
    // SAFETY: not null, so NUL-terminated text that lives until the next dl call of this thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn check_platform() -> Result<(), String> {
    let version = symbol::function!(c"gnu_get_libc_version", extern "C" fn() -> *const core::ffi::c_char);
    let Some(version) = version else {
        return Err("the C library of this process is not glibc (musl is not supported yet)".to_owned());
    };
    // SAFETY: glibc returns static NUL-terminated text.
    let text = unsafe { CStr::from_ptr(version()) }.to_string_lossy();
    let mut parts = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < GLIBC_OLDEST {
        return Err(format!("glibc {text} is too old: {}.{} or newer is needed", GLIBC_OLDEST.0, GLIBC_OLDEST.1));
    }
    Ok(())
}
