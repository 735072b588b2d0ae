//! The language ring: a native audit hook that refuses connections and look-ups with a Python error that names them.
//!
//! It is added at the first entry that blocks the network, because it can never be removed; while no sandbox blocks, an
//! event costs two comparisons. What it does not see (C drivers) the libc ring refuses.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void, CStr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hermetic_abi::{status, Api, Finding, Text};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString, PyTuple};

use crate::symbol::function;
use crate::{engine, errors, floor_audit};

type Hook = extern "C" fn(*const c_char, *mut ffi::PyObject, *mut c_void) -> c_int;
type AddHook = extern "C" fn(Hook, *mut c_void) -> c_int;

const PREFIX: &[u8] = b"socket.";
/// Longest event name below [`PREFIX`] that concerns us is `gethostbyname`; longer ones are cut.
const NAME_LEN_MAX: usize = 24;
/// `AF_INET` and `AF_INET6` go by host and port; other families than these and `AF_UNIX` are left to the libc ring.
const SOCKADDR_UN_PATH_MAX: usize = 108;

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Sandboxes that restrict the network.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// What an event asks for.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Talk,
    /// A socket is made.
    Create,
    Bind,
    /// `getaddrinfo`, which stands before most connections: a number in place of a name is refused like the connection.
    Resolve,
    LookUp,
    LookUpAddress,
}

const EVENTS: [(&[u8], Act); 9] = [
    (b"__new__", Act::Create),
    (b"connect", Act::Talk),
    (b"sendto", Act::Talk),
    (b"sendmsg", Act::Talk),
    (b"bind", Act::Bind),
    (b"getaddrinfo", Act::Resolve),
    (b"gethostbyname", Act::LookUp),
    (b"gethostbyaddr", Act::LookUp),
    (b"getnameinfo", Act::LookUpAddress),
];

/// A sandbox that restricts the network begins.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    install(py)?;
    GUARDED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// It ends.
pub fn end() {
    GUARDED.fetch_sub(1, Ordering::Relaxed);
}

fn install(py: Python<'_>) -> PyResult<()> {
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    match function!(c"PySys_AddAuditHook", AddHook) {
        Some(add) => {
            if add(hook, core::ptr::null_mut()) != 0 {
                return Err(PyErr::take(py).unwrap_or_else(|| errors::sandbox(py, "the audit hook was not accepted")));
            }
        }
        None => {
            let callable = wrap_pyfunction!(audit_event, py)?;
            py.import("sys")?.call_method1("addaudithook", (callable,))?;
        }
    }
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The hook for interpreters that lack the C function.
#[pyfunction]
fn audit_event(event: &str, arguments: Bound<'_, PyTuple>) -> PyResult<()> {
    let Some(name) = event.as_bytes().strip_prefix(PREFIX) else {
        return floor_audit::handle_python(event, &arguments);
    };
    if GUARDED.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    judge(name, &arguments)
}

extern "C" fn hook(event: *const c_char, arguments: *mut ffi::PyObject, _: *mut c_void) -> c_int {
    // SAFETY: event names are NUL-terminated.
    if unsafe { floor_audit::concerns(event) } {
        // SAFETY: as above; the interpreter passes a tuple and holds its lock.
        return unsafe { floor_audit::hook(event, arguments) };
    }
    // SAFETY: as above.
    if !unsafe { is_about_sockets(event) } || GUARDED.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // SAFETY: as above.
    let event = unsafe { CStr::from_ptr(event) }.to_bytes();
    let Some(name) = event.strip_prefix(PREFIX) else { return 0 };
    // SAFETY: audit events are raised while the interpreter lock is held.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the interpreter passes a tuple, borrowed for this call.
    let arguments = unsafe { Bound::from_borrowed_ptr_or_opt(py, arguments) };
    let Some(Ok(arguments)) = arguments.map(|arguments| arguments.cast_into::<PyTuple>()) else { return 0 };
    match judge(name, &arguments) {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// By the first two letters: `sys._getframe` is far more frequent than anything about sockets.
///
/// # Safety
/// `event` is NUL-terminated.
#[inline(always)]
unsafe fn is_about_sockets(event: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    if unsafe { event.read() } as u8 != PREFIX[0] {
        return false;
    }
    // SAFETY: the first letter is not the closing NUL.
    let second = unsafe { event.add(1) };
    // SAFETY: as above.
    unsafe { second.read() as u8 == PREFIX[1] }
}

fn judge(name: &[u8], arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    if name.len() > NAME_LEN_MAX {
        return Ok(());
    }
    let Some((_, act)) = EVENTS.iter().find(|(known, _)| *known == name) else { return Ok(()) };
    let Ok(api) = engine::api() else { return Ok(()) };
    // SAFETY: no arguments.
    if unsafe { (api.is_network_guarded)() } == 0 {
        return Ok(());
    }
    match act {
        Act::Talk => judge_talk(api, arguments),
        Act::Create => judge_family(api, arguments),
        Act::Bind => judge_bind(api, arguments),
        Act::Resolve => judge_look_up(api, arguments, false),
        Act::LookUp => judge_look_up(api, arguments, true),
        Act::LookUpAddress => judge_address_look_up(api, arguments),
    }
}

/// `socket.connect`, `sendto`, `sendmsg`: (socket, address). The address is None for a message on a connected socket.
fn judge_talk(api: &Api, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let (Ok(socket), Ok(address)) = (arguments.get_item(0), arguments.get_item(1)) else { return Ok(()) };
    // A name that libc's ring let through for us is asked by name below, in any case.
    take_pending(api);
    if address.is_none() {
        return Ok(());
    }
    let family: c_int = socket.getattr("family")?.call_method0("__int__")?.extract()?;
    match family {
        libc::AF_UNIX => judge_path(api, &address),
        libc::AF_INET | libc::AF_INET6 => judge_host(api, &address, false),
        _ => Ok(()),
    }
}

/// `socket.__new__`: (socket, family, type, protocol). Raw frames pass by every address that is judged later, so the floor
/// refuses the socket itself.
fn judge_family(api: &Api, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let family = arguments.get_item(1).and_then(|family| family.extract::<c_int>()).unwrap_or(libc::AF_INET);
    if family != libc::AF_PACKET || !floor_audit::is_laid() {
        return Ok(());
    }
    let address = (family as libc::sa_family_t).to_ne_bytes();
    let mut found = hermetic_abi::Finding::BLANK;
    // SAFETY: the address and the finding outlive the call.
    let answer = unsafe { (api.check_address)(address.as_ptr().cast(), address.len() as u32, &raw mut found) };
    if answer != status::REFUSED {
        return Ok(());
    }
    Err(refusal(arguments.py(), &found, "AF_PACKET".into_pyobject(arguments.py())?.into_any(), false))
}

/// Binding is allowed, but `bind((name, port))` makes CPython look the name up; a refused one left a placeholder.
fn judge_bind(api: &Api, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    if !take_pending(api) {
        return Ok(());
    }
    let Ok(address) = arguments.get_item(1) else { return Ok(()) };
    judge_host(api, &address, true)
}

fn judge_look_up(api: &Api, arguments: &Bound<'_, PyTuple>, is_always_look_up: bool) -> PyResult<()> {
    let Ok(host) = arguments.get_item(0) else { return Ok(()) };
    // Without a host nobody is asked: it stands for all addresses of this machine.
    let Some(host) = text(&host).filter(|host| !host.is_empty()) else { return Ok(()) };
    let port = arguments.get_item(1).ok().and_then(|port| port.extract::<i32>().ok()).unwrap_or(-1);
    ask_host(api, arguments.py(), &host, port, is_always_look_up || !is_numeric(&host))
}

fn is_numeric(host: &[u8]) -> bool {
    let bare = host.split(|byte| *byte == b'%').next().unwrap_or_default();
    core::str::from_utf8(bare).is_ok_and(|text| text.parse::<core::net::IpAddr>().is_ok())
}

/// `socket.getnameinfo`: (sockaddr,).
fn judge_address_look_up(api: &Api, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let Ok(address) = arguments.get_item(0) else { return Ok(()) };
    judge_host(api, &address, true)
}

/// (host, port, …) as Python spells an internet address.
fn judge_host(api: &Api, address: &Bound<'_, PyAny>, is_look_up: bool) -> PyResult<()> {
    let Ok(parts) = address.cast::<PyTuple>() else { return Ok(()) };
    let (Ok(host), Ok(port)) = (parts.get_item(0), parts.get_item(1)) else { return Ok(()) };
    let Some(host) = text(&host) else { return Ok(()) };
    ask_host(api, address.py(), &host, port.extract::<i32>().unwrap_or(-1), is_look_up)
}

fn judge_path(api: &Api, address: &Bound<'_, PyAny>) -> PyResult<()> {
    let path = match address.cast::<PyString>() {
        // The interpreter encodes a path with the file system's encoding, surrogates included.
        Ok(path) => match path.call_method1("encode", ("utf-8", "surrogateescape")) {
            Ok(path) => path,
            Err(_) => return Ok(()),
        },
        Err(_) => address.clone(),
    };
    let Some(path) = bytes(&path) else { return Ok(()) };
    // SAFETY: an all-zero address is a valid value.
    let mut socket_address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    socket_address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() > SOCKADDR_UN_PATH_MAX {
        return Ok(());
    }
    for (slot, byte) in socket_address.sun_path.iter_mut().zip(&path) {
        *slot = *byte as c_char;
    }
    let len = core::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
    let mut found = hermetic_abi::Finding::BLANK;
    // SAFETY: the address and the finding outlive the call; `len` lies within the address.
    let answer = unsafe { (api.check_address)((&raw const socket_address).cast(), len as u32, &raw mut found) };
    if answer != status::REFUSED {
        return Ok(());
    }
    let subject = String::from_utf8_lossy(&path).into_owned();
    Err(refusal(address.py(), &found, subject.into_pyobject(address.py())?.into_any(), false))
}

fn ask_host(api: &Api, py: Python<'_>, host: &[u8], port: i32, is_look_up: bool) -> PyResult<()> {
    let mut found = hermetic_abi::Finding::BLANK;
    // SAFETY: the text and the finding outlive the call.
    let answer = unsafe { (api.check_host)(engine::slice(host), port, &raw mut found) };
    if answer != status::REFUSED {
        return Ok(());
    }
    let name = String::from_utf8_lossy(host).into_owned();
    let address = (name, (port >= 0).then_some(port)).into_pyobject(py)?;
    Err(refusal(py, &found, address.into_any(), is_look_up))
}

fn refusal(py: Python<'_>, found: &Finding, address: Bound<'_, PyAny>, is_look_up: bool) -> PyErr {
    if let Some(error) = floor_audit::refusal(py, found) {
        return error;
    }
    let name = if is_look_up { "NameLookupBlockedError" } else { "NetworkBlockedError" };
    match errors::class(py, name).and_then(|class| class.call1((found.message.as_str(), address))) {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}

fn take_pending(api: &Api) -> bool {
    let mut name = Text::new();
    // SAFETY: `name` is writable.
    unsafe { (api.take_pending_name)(&raw mut name) == 1 }
}

/// A host as bytes; None for None and for what is no text.
fn text(host: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(name) = host.cast::<PyString>() {
        // CPython sends names in IDNA form; plain ASCII is the same in both.
        if let Ok(ascii) = name.to_str() {
            if ascii.is_ascii() {
                return Some(ascii.as_bytes().to_vec());
            }
        }
        return name.call_method1("encode", ("idna",)).ok().and_then(|name| bytes(&name));
    }
    bytes(host)
}

fn bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(own) = value.cast::<PyBytes>() {
        return Some(own.as_bytes().to_vec());
    }
    value.cast::<PyByteArray>().ok().map(|own| own.to_vec())
}
