//! `<netdb.h>`: look-ups. A refused name is refused before any query leaves.

use crate::table::hooks;
use crate::{network, threads};
use core::ffi::{c_char, c_int, c_void, CStr};
use core::fmt::Write;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use hermetic_policy::Target;
use libc::{addrinfo, hostent, size_t, sockaddr, socklen_t};

hooks! {
    #[InterpreterSockets = getaddrinfo_of_interpreter] getaddrinfo(
        host: *const c_char, service: *const c_char, hints: *const addrinfo, out: *mut *mut addrinfo
    ) -> c_int;
    getnameinfo(
        address: *const sockaddr, len: socklen_t, host: *mut c_char, host_len: socklen_t,
        service: *mut c_char, service_len: socklen_t, flags: c_int
    ) -> c_int;
    gethostbyname(host: *const c_char) -> *mut hostent;
    gethostbyname2(host: *const c_char, family: c_int) -> *mut hostent;
    gethostbyname_r(
        host: *const c_char, entry: *mut hostent, buffer: *mut c_char, len: size_t,
        out: *mut *mut hostent, error: *mut c_int
    ) -> c_int;
    gethostbyname2_r(
        host: *const c_char, family: c_int, entry: *mut hostent, buffer: *mut c_char, len: size_t,
        out: *mut *mut hostent, error: *mut c_int
    ) -> c_int;
    gethostbyaddr(address: *const c_void, len: socklen_t, family: c_int) -> *mut hostent;
    gethostbyaddr_r(
        address: *const c_void, len: socklen_t, family: c_int, entry: *mut hostent, buffer: *mut c_char,
        buffer_len: size_t, out: *mut *mut hostent, error: *mut c_int
    ) -> c_int;
}

const HOST_NOT_FOUND: c_int = 1;

extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

/// A documentation address of RFC 5737, which leads nowhere.
const PLACEHOLDER_V4: &CStr = c"192.0.2.1";
/// A documentation address of RFC 3849.
const PLACEHOLDER_V6: &CStr = c"2001:db8::1";

/// # Safety
/// A non-null pointer is a C string.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

fn port_of(service: Option<&[u8]>) -> Option<u16> {
    core::str::from_utf8(service?).ok()?.parse().ok().filter(|&port| port != 0)
}

/// Judges a look-up; true when it is refused.
fn is_refused(target: &Target<'_>) -> bool {
    network::is_refused("look up", target)
}

pub unsafe extern "C" fn getaddrinfo(
    host: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    out: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let name = unsafe { text(host) };
    // SAFETY: as above.
    let port = port_of(unsafe { text(service) });
    if name.is_some_and(|host| is_refused(&Target::Name { host, port })) {
        return libc::EAI_NONAME;
    }
    // SAFETY: the arguments are the program's.
    unsafe { look_up(host, service, hints, out) }
}

/// The real look-up; where an allowed name led is remembered.
///
/// # Safety
/// As for `getaddrinfo`.
unsafe fn look_up(
    host: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    out: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { real::getaddrinfo(host, service, hints, out) };
    // SAFETY: as above.
    let name = unsafe { text(host) };
    if let (0, Some(name)) = (result, name) {
        // SAFETY: libc put the list there.
        let list = unsafe { *out };
        // SAFETY: libc made the list.
        unsafe { remember(name, list) };
    }
    result
}

/// CPython looks a name up that was given to `connect` before it raises the audit event that knows the port. A refused name
/// gets a placeholder here, so that the event, which still carries the name, is refused with host and port. Explicit look-ups
/// have raised their own event before, so what is refused here comes from nowhere else.
pub unsafe extern "C" fn getaddrinfo_of_interpreter(
    host: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    out: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let name = unsafe { text(host) };
    // SAFETY: as above.
    let port = port_of(unsafe { text(service) });
    if !crate::host::has_front_end() {
        // A started program: there is no audit hook to name a placeholder.
        // SAFETY: the arguments are the program's.
        return unsafe { getaddrinfo(host, service, hints, out) };
    }
    if !name.is_some_and(|host| put_pending(host, port)) {
        // SAFETY: the arguments are the program's.
        return unsafe { look_up(host, service, hints, out) };
    }
    // SAFETY: a non-null pointer is the program's structure.
    let family = unsafe { hints.as_ref() }.map_or(libc::AF_UNSPEC, |hints| hints.ai_family);
    let placeholder = if family == libc::AF_INET6 { PLACEHOLDER_V6 } else { PLACEHOLDER_V4 };
    // SAFETY: as above, or null.
    let mut numeric = match unsafe { hints.as_ref() } {
        Some(hints) => *hints,
        // SAFETY: all-zero hints are what null means.
        None => unsafe { core::mem::zeroed() },
    };
    numeric.ai_flags = libc::AI_NUMERICHOST;
    // SAFETY: a numeric host, the program's service and result; nothing is asked of any server.
    unsafe { real::getaddrinfo(placeholder.as_ptr(), service, &numeric, out) }
}

/// Notes a refused name for the connection that follows. False: the name is allowed.
fn put_pending(host: &[u8], port: Option<u16>) -> bool {
    if !network::is_hidden_look_up_refused(&Target::Name { host, port }) {
        return false;
    }
    let Some(record) = threads::current() else { return false };
    let mut name = hermetic_abi::Text::new();
    for chunk in host.utf8_chunks() {
        let _ = name.write_str(chunk.valid());
    }
    // SAFETY: this thread's own record (H8).
    unsafe { (*record).pending_name = name };
    true
}

/// # Safety
/// `list` is a list that `getaddrinfo` made.
unsafe fn remember(name: &[u8], mut list: *const addrinfo) {
    if !network::is_guarded() {
        return;
    }
    // SAFETY: the caller's promise; the list ends with null.
    while let Some(entry) = unsafe { list.as_ref() } {
        // SAFETY: as above: the entry describes its address.
        let address = unsafe { crate::address::Address::read(entry.ai_addr.cast(), entry.ai_addrlen) };
        if let Some(Target::Address { ip, .. }) = address.as_ref().map(|address| address.target()) {
            network::remember(name, ip);
        }
        list = entry.ai_next;
    }
}

pub unsafe extern "C" fn getnameinfo(
    address: *const sockaddr,
    len: socklen_t,
    host: *mut c_char,
    host_len: socklen_t,
    service: *mut c_char,
    service_len: socklen_t,
    flags: c_int,
) -> c_int {
    // With NI_NUMERICHOST, or without a place for the host, nobody is asked.
    let asks = flags & libc::NI_NUMERICHOST == 0 && !host.is_null();
    // SAFETY: the program's promise to libc.
    let asked = if asks { unsafe { crate::address::Address::read(address.cast(), len) } } else { None };
    if let Some(Target::Address { ip, .. }) = asked.as_ref().map(|asked| asked.target()) {
        if is_refused(&Target::Address { ip, port: None }) {
            return libc::EAI_NONAME;
        }
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::getnameinfo(address, len, host, host_len, service, service_len, flags) }
}

/// # Safety
/// A non-null `host` is a C string.
unsafe fn is_name_refused(host: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let name = unsafe { text(host) };
    let is_refused = name.is_some_and(|host| is_refused(&Target::Name { host, port: None }));
    if is_refused {
        set_h_errno();
    }
    is_refused
}

fn set_h_errno() {
    // SAFETY: glibc returns a valid address for the calling thread.
    let place = unsafe { __h_errno_location() };
    // SAFETY: as above.
    unsafe { *place = HOST_NOT_FOUND };
}

/// # Safety
/// `entry` is null or an entry of libc's.
unsafe fn remember_entry(host: *const c_char, entry: *const hostent) {
    // SAFETY: the caller's promise.
    let Some(name) = (unsafe { text(host) }) else { return };
    // SAFETY: the caller's promise.
    let Some(entry) = (unsafe { entry.as_ref() }) else { return };
    if !network::is_guarded() {
        return;
    }
    let mut next = entry.h_addr_list;
    // SAFETY: the list ends with null.
    while let Some(&address) = unsafe { next.as_ref() }.filter(|address| !address.is_null()) {
        // SAFETY: each address has the entry's length.
        if let Some(ip) = unsafe { ip_of(address.cast(), entry.h_length as socklen_t) } {
            network::remember(name, ip);
        }
        next = next.wrapping_add(1);
    }
}

/// # Safety
/// `address` is valid for reading `len` bytes.
unsafe fn ip_of(address: *const c_void, len: socklen_t) -> Option<IpAddr> {
    match len {
        // SAFETY: the caller's promise.
        4 => Some(IpAddr::V4(Ipv4Addr::from(unsafe { address.cast::<[u8; 4]>().read_unaligned() }))),
        // SAFETY: the caller's promise.
        16 => Some(IpAddr::V6(Ipv6Addr::from(unsafe { address.cast::<[u8; 16]>().read_unaligned() }))),
        _ => None,
    }
}

pub unsafe extern "C" fn gethostbyname(host: *const c_char) -> *mut hostent {
    // SAFETY: the program's promise to libc.
    if unsafe { is_name_refused(host) } {
        return core::ptr::null_mut();
    }
    // SAFETY: the argument is the program's.
    let entry = unsafe { real::gethostbyname(host) };
    // SAFETY: libc's answer.
    unsafe { remember_entry(host, entry) };
    entry
}

pub unsafe extern "C" fn gethostbyname2(host: *const c_char, family: c_int) -> *mut hostent {
    // SAFETY: the program's promise to libc.
    if unsafe { is_name_refused(host) } {
        return core::ptr::null_mut();
    }
    // SAFETY: the arguments are the program's.
    let entry = unsafe { real::gethostbyname2(host, family) };
    // SAFETY: libc's answer.
    unsafe { remember_entry(host, entry) };
    entry
}

/// # Safety
/// As for the reentrant functions' last two arguments.
unsafe fn not_found(out: *mut *mut hostent, error: *mut c_int) -> c_int {
    if !out.is_null() {
        // SAFETY: the program's pointer.
        unsafe { *out = core::ptr::null_mut() };
    }
    if !error.is_null() {
        // SAFETY: the program's pointer.
        unsafe { *error = HOST_NOT_FOUND };
    }
    0
}

pub unsafe extern "C" fn gethostbyname_r(
    host: *const c_char,
    entry: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    out: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the program's promise to libc.
    if unsafe { is_name_refused(host) } {
        // SAFETY: the program's pointers.
        return unsafe { not_found(out, error) };
    }
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::gethostbyname_r(host, entry, buffer, len, out, error) };
    if result == 0 && !out.is_null() {
        // SAFETY: libc put its answer there.
        let answer = unsafe { *out };
        // SAFETY: libc's answer, or null.
        unsafe { remember_entry(host, answer) };
    }
    result
}

pub unsafe extern "C" fn gethostbyname2_r(
    host: *const c_char,
    family: c_int,
    entry: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    out: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the program's promise to libc.
    if unsafe { is_name_refused(host) } {
        // SAFETY: the program's pointers.
        return unsafe { not_found(out, error) };
    }
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::gethostbyname2_r(host, family, entry, buffer, len, out, error) };
    if result == 0 && !out.is_null() {
        // SAFETY: libc put its answer there.
        let answer = unsafe { *out };
        // SAFETY: libc's answer, or null.
        unsafe { remember_entry(host, answer) };
    }
    result
}

/// # Safety
/// A non-null `address` is valid for reading `len` bytes.
unsafe fn is_reverse_refused(address: *const c_void, len: socklen_t) -> bool {
    if address.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let ip = unsafe { ip_of(address, len) };
    let is_refused = ip.is_some_and(|ip| is_refused(&Target::Address { ip, port: None }));
    if is_refused {
        set_h_errno();
    }
    is_refused
}

pub unsafe extern "C" fn gethostbyaddr(address: *const c_void, len: socklen_t, family: c_int) -> *mut hostent {
    // SAFETY: the program's promise to libc.
    if unsafe { is_reverse_refused(address, len) } {
        return core::ptr::null_mut();
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::gethostbyaddr(address, len, family) }
}

pub unsafe extern "C" fn gethostbyaddr_r(
    address: *const c_void,
    len: socklen_t,
    family: c_int,
    entry: *mut hostent,
    buffer: *mut c_char,
    buffer_len: size_t,
    out: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the program's promise to libc.
    if unsafe { is_reverse_refused(address, len) } {
        // SAFETY: the program's pointers.
        return unsafe { not_found(out, error) };
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::gethostbyaddr_r(address, len, family, entry, buffer, buffer_len, out, error) }
}
