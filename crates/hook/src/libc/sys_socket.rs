//! `<sys/socket.h>`: connections, addressed sends, and data on connections from before the sandbox.

use super::poll::{wait_until_for, Limit};
use crate::address::Address;
use crate::glance::Only;
use crate::guard::Call;
use crate::host::Registered;
use crate::table::hooks;
use crate::{descriptors, follower, network, outside, parking, reading, threads};
use core::ffi::{c_int, c_uint, c_void};
use core::net::IpAddr;
use hermetic_journal::WaitKind;
use hermetic_model::clock;
use hermetic_policy::Target;
use hermetic_sys::clock::set_errno;
use libc::{mmsghdr, msghdr, pollfd, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval};

hooks! {
    socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
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
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
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
    if !network::is_guarded() {
        return false;
    }
    // SAFETY: the caller's promise.
    let Some(address) = (unsafe { Address::read(address, len) }) else { return false };
    let is_refused = is_refused_to(what, &address);
    if is_refused {
        set_errno(REFUSED);
    }
    is_refused
}

fn is_refused_to(what: &str, address: &Address) -> bool {
    let name = threads::take_pending_name();
    let target = match (name.as_str().as_bytes(), address.target()) {
        // A placeholder stands for a refused name: the refusal shall name it.
        (host @ [_, ..], Target::Address { port, .. }) => Target::Name { host, port },
        (_, target) => target,
    };
    network::is_refused(what, &target)
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

/// Raw frames pass by every address that is judged later, so the floor refuses the socket itself.
pub unsafe extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    let target = Target::Other { family: family as u16 };
    if family == libc::AF_PACKET && crate::floor::is_active() && network::is_refused("open a socket of", &target) {
        set_errno(libc::EPERM);
        return -1;
    }
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::socket(family, kind, protocol) };
    outside::note_new(fd);
    fd
}

/// Under a floor, listening where others could connect is judged like a connection to there; the loopback is this machine's own.
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if crate::floor::is_active() {
        let own = Address::own(fd);
        let target = own.as_ref().map(Address::target);
        let is_open = matches!(target, Some(Target::Address { ip, .. }) if !is_loopback(ip));
        if let Some(target) = target.filter(|_| is_open) {
            if network::is_refused("listen on", &target) {
                set_errno(libc::EACCES);
                return -1;
            }
        }
    }
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::listen(fd, backlog) };
    if result == 0 {
        outside::note_listening(fd, parking::page_now());
    }
    result
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
    }
}

pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program's promise to libc.
    if unsafe { is_address_refused("connect to", address.cast(), len) } {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::connect(fd, address, len) };
    // SAFETY: as above.
    unsafe { note_connection(result, fd, address, len) };
    result
}

/// # Safety
/// `address` is null or valid for reading `len` bytes.
unsafe fn note_connection(result: c_int, fd: c_int, address: *const sockaddr, len: socklen_t) {
    let Some(page) = parking::page_now() else { return };
    let errno = hermetic_sys::clock::errno();
    if result != 0 && errno != libc::EINPROGRESS {
        return;
    }
    let Some(call) = Call::enter() else { return };
    // SAFETY: the caller's promise.
    if let Some(address) = unsafe { Address::read(address.cast(), len) } {
        outside::note_connection(fd, &address, page);
    }
    drop(call);
    set_errno(errno);
}

/// Notes what a send or a receipt of so many bytes means for who owes an answer.
pub fn sent(fd: c_int, count: ssize_t) -> ssize_t {
    if count > 0 {
        outside::note_sent(fd);
    }
    count
}

pub fn received(fd: c_int, count: ssize_t) -> ssize_t {
    if let Ok(count) = usize::try_from(count) {
        outside::note_received(fd, count);
    }
    count
}

pub unsafe extern "C" fn send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    if is_refused(fd) {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    sent(fd, unsafe { real::send(fd, buffer, len, flags) })
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
    sent(fd, unsafe { real::sendto(fd, buffer, len, flags, address, address_len) })
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
    sent(fd, unsafe { real::sendmsg(fd, message, flags) })
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

/// Calls with one of these return at once.
const NEVER_WAITING: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB;

/// Runs a call that takes something from a descriptor, with the limit that the program may have set for it. Where threads take
/// turns it is not taken before it is the thread's turn: another may look in the meantime.
#[inline]
pub fn receiving<R: From<i8>>(fd: c_int, flags: c_int, act: impl FnOnce() -> R) -> R {
    match descriptors::is_limited(fd).then(|| limit_of(fd)).flatten() {
        Some(limit) => receive_within(fd, limit, act),
        None if flags & NEVER_WAITING == 0 && parking::takes_turns(fd) => receive_within(fd, Limit::Never, act),
        None => parking::when_ready(fd, libc::POLLIN, act),
    }
}

/// The socket's own limit; none where it has none, or does not wait at all.
fn limit_of(fd: c_int) -> Option<Limit> {
    let mut span = timeval { tv_sec: 0, tv_usec: 0 };
    let mut len = size_of::<timeval>() as socklen_t;
    let value = (&raw mut span).cast();
    // SAFETY: the value is as long as it says.
    let error = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, &mut len) };
    // SAFETY: only asks.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if error != 0 || flags & libc::O_NONBLOCK != 0 {
        return None;
    }
    clock::from_timeval(span.tv_sec, span.tv_usec).filter(|&ns| ns > 0).map(Limit::Nanoseconds)
}

fn receive_within<R: From<i8>>(fd: c_int, limit: Limit, act: impl FnOnce() -> R) -> R {
    let awaited = pollfd { fd, events: libc::POLLIN, revents: 0 };
    let look = |_: Only| c_int::from(parking::is_any_ready(&mut [awaited]));
    // A wait that is not ours to make is the call's own.
    let ready = wait_until_for(WaitKind::Socket, limit, core::ptr::null(), look, |fds| _ = fds.push(awaited), |_| 1);
    match ready {
        0 => {
            // The kernel calls a limit that was reached "try again". Without one it was a deadlock.
            set_errno(if limit == Limit::Never { libc::EINTR } else { libc::EAGAIN });
            R::from(-1)
        }
        ..0 => R::from(-1),
        _ => act(),
    }
}

pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::setsockopt(fd, level, name, value, len) };
    if result == 0 && level == libc::SOL_SOCKET && name == libc::SO_RCVTIMEO && !crate::fork::is_borrowed() {
        descriptors::set_limited(fd, true);
    }
    result
}

/// Waits for the first message within the limit, then takes what is there. The kernel looks at the limit only when a message
/// comes, which its manual calls a bug; a limit that is reached is "try again" here.
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let limit = unsafe { Limit::from_timespec(timeout) };
    let is_waiting = flags & libc::MSG_DONTWAIT == 0 && crate::guard::active().is_some();
    match limit.filter(|_| is_waiting && !timeout.is_null()) {
        Some(limit @ Limit::Nanoseconds(_)) => receive_within(fd, limit, || {
            // SAFETY: the program's arguments; the first message is there, and further ones are not waited for.
            unsafe { real::recvmmsg(fd, messages, count, flags | libc::MSG_WAITFORONE, core::ptr::null_mut()) }
        }),
        // SAFETY: the arguments are the program's.
        _ => receiving(fd, flags, || unsafe { real::recvmmsg(fd, messages, count, flags, timeout) }),
    }
}

pub unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    let count = reading::taking(fd, len, |len| {
        // SAFETY: the arguments are the program's.
        received(fd, receiving(fd, flags, || unsafe { real::recv(fd, buffer, len, flags) }))
    });
    follower::received(count);
    count
}

pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    reading::taking(fd, len, |len| {
        let count = receiving(fd, flags, || {
            // SAFETY: the arguments are the program's.
            unsafe { real::recvfrom(fd, buffer, len, flags, address, address_len) }
        });
        received(fd, count)
    })
}

pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the program's.
    received(fd, receiving(fd, flags, || unsafe { real::recvmsg(fd, message, flags) }))
}

/// Notes a connection that somebody else has made, if `fd` is one.
fn accepted(fd: c_int) -> c_int {
    outside::note_new(fd);
    follower::note_accepted(fd);
    fd
}

pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the program's.
    accepted(receiving(fd, 0, || unsafe { real::accept(fd, address, len) }))
}

pub unsafe extern "C" fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    accepted(receiving(fd, 0, || unsafe { real::accept4(fd, address, len, flags) }))
}
