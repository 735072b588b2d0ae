//! `<sys/socket.h>`: connections, addressed sends, and data on connections from before the sandbox.

use crate::address::Address;
use crate::guard::Call;
use crate::host::Registered;
use crate::table::hooks;
use crate::{descriptors, parking};
use core::ffi::{c_int, c_uint, c_void};
use hermetic_engine::{Sandbox, Thread};
use hermetic_policy::Target;
use hermetic_sys::clock::set_errno;
use libc::{mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t};

hooks! {
    connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    sendto(
        fd: c_int, buffer: *const c_void, len: size_t, flags: c_int, address: *const sockaddr, address_len: socklen_t
    ) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t;
    recvfrom(
        fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int, address: *mut sockaddr, address_len: *mut socklen_t
    ) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int;
    accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
}

/// What a refused call finds in `errno`: what an absent server gives, so that existing error handling degrades gracefully.
const REFUSED: c_int = libc::ECONNREFUSED;

/// Whether an addressed call is refused; then `errno` says so.
///
/// # Safety
/// `address` is null or valid for reading `len` bytes.
unsafe fn is_address_refused(what: &str, address: *const c_void, len: socklen_t) -> bool {
    let Some(mut call) = Call::enter_any() else { return false };
    if !call.sandbox.is_network_guarded() {
        return false;
    }
    // SAFETY: the caller's promise.
    let Some(address) = (unsafe { Address::read(address, len) }) else { return false };
    let (sandbox, thread) = call.parts();
    let is_refused = judge(sandbox, thread, what, &address);
    drop(call);
    if is_refused {
        set_errno(REFUSED);
    }
    is_refused
}

fn judge(sandbox: &Sandbox, thread: &mut Thread, what: &str, address: &Address) -> bool {
    let name = core::mem::take(&mut thread.pending_name);
    let target = match (name.as_str().as_bytes(), address.target()) {
        // A placeholder stands for a refused name: the refusal shall name it.
        (host @ [_, ..], Target::Address { port, .. }) => Target::Name { host, port },
        (_, target) => target,
    };
    sandbox.judge(thread, &Registered, what, &target).is_some()
}

/// Whether data on this descriptor is refused: it is a connection from before the sandbox to somewhere that the policy does
/// not allow. Each descriptor is looked at once per sandbox.
pub fn is_refused(fd: c_int) -> bool {
    let Some(mut call) = Call::enter_any() else { return false };
    let (sandbox, thread) = call.parts();
    if !sandbox.is_network_guarded() || descriptors::is_judged(fd, sandbox.generation()) {
        return false;
    }
    let peer = Address::peer(fd).filter(|peer| peer.is_internet());
    let is_refused = match &peer {
        Some(peer) => sandbox.judge(thread, &Registered, "send data to", &peer.target()).is_some(),
        None => false,
    };
    if !is_refused {
        descriptors::set_judged(fd, sandbox.generation());
    }
    drop(call);
    if is_refused {
        set_errno(REFUSED);
    }
    is_refused
}

pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program's promise to libc.
    if unsafe { is_address_refused("connect to", address.cast(), len) } {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::connect(fd, address, len) }
}

pub unsafe extern "C" fn send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    if is_refused(fd) {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::send(fd, buffer, len, flags) }
}

pub unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_len: socklen_t,
) -> ssize_t {
    let refused = if address.is_null() {
        is_refused(fd)
    } else {
        // SAFETY: the program's promise to libc.
        unsafe { is_address_refused("send to", address.cast(), address_len) }
    };
    if refused {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::sendto(fd, buffer, len, flags, address, address_len) }
}

/// # Safety
/// A non-null `message` points to a message header.
unsafe fn is_message_refused(fd: c_int, message: *const msghdr) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { message.as_ref() } {
        Some(message) if !message.msg_name.is_null() => {
            // SAFETY: the header describes its address.
            unsafe { is_address_refused("send to", message.msg_name, message.msg_namelen) }
        }
        _ => is_refused(fd),
    }
}

pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's promise to libc.
    if unsafe { is_message_refused(fd, message) } {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::sendmsg(fd, message, flags) }
}

pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    let mut allowed = 0;
    while allowed < count && !messages.is_null() {
        // The header of a single message comes first in each.
        let message = messages.wrapping_add(allowed as usize).cast::<msghdr>();
        // SAFETY: the program's promise to libc: `count` headers.
        if unsafe { is_message_refused(fd, message) } {
            break;
        }
        allowed += 1;
    }
    // As the kernel does: what came before the bad message is sent, the error shows when it is the first.
    if allowed == 0 && count > 0 && !messages.is_null() {
        return -1;
    }
    // SAFETY: the arguments are the program's, cut at the first message that is refused.
    unsafe { real::sendmmsg(fd, messages, allowed, flags) }
}

pub unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the program's.
    parking::when_ready(fd, libc::POLLIN, || unsafe { real::recv(fd, buffer, len, flags) })
}

pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    parking::when_ready(fd, libc::POLLIN, || {
        // SAFETY: the arguments are the program's.
        unsafe { real::recvfrom(fd, buffer, len, flags, address, address_len) }
    })
}

pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the program's.
    parking::when_ready(fd, libc::POLLIN, || unsafe { real::recvmsg(fd, message, flags) })
}

pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the program's.
    parking::when_ready(fd, libc::POLLIN, || unsafe { real::accept(fd, address, len) })
}

pub unsafe extern "C" fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    parking::when_ready(fd, libc::POLLIN, || unsafe { real::accept4(fd, address, len, flags) })
}
