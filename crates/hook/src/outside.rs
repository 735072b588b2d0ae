//! Connections to programs that take no part in the sandbox: a database, a service of the session, an allowed host.
//!
//! While one of them owes an answer, time follows real time, so that a time-out never comes before an answer that is on its
//! way. A stream owes an answer from a connection or a send until something is received, and not for ever: a request that
//! nobody answers stops counting after a while. Who listens inside is known by port and, for unix sockets, by process.

use crate::address::Address;
use crate::guard::Call;
use crate::page::Page;
use crate::parking;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use hermetic_policy::Target;
use hermetic_sys::clock as kernel;

/// How long a connection may take to greet, and a request to be answered, before nobody waits for it any more.
const GREETING_NS: i64 = 2_000_000_000;
const ANSWER_NS: i64 = 30_000_000_000;
/// How long the rest of an answer may take after a part of it: a database ends an error's message some time after it began.
const REST_NS: i64 = 50_000_000;

/// Streams that may owe at the same time; further ones do not count.
const OWING_MAX: usize = 64;

struct Owing {
    /// The descriptor plus one; 0 for a free place.
    fd: AtomicI32,
    /// Real time at which it stops counting; 0 while nothing is owed.
    until_ns: AtomicI64,
}

static OWING: [Owing; OWING_MAX] = [const { Owing { fd: AtomicI32::new(0), until_ns: AtomicI64::new(0) } }; OWING_MAX];
/// Streams to outside that are known: nobody looks while there are none.
static KNOWN: AtomicU32 = AtomicU32::new(0);

/// A set of ports.
#[repr(C)]
pub struct Ports([AtomicU64; 1024]);

impl Ports {
    pub const fn new() -> Ports {
        Ports([const { AtomicU64::new(0) }; 1024])
    }

    pub fn add(&self, port: u16) {
        self.0[usize::from(port) / 64].fetch_or(1 << (port % 64), Ordering::Relaxed);
    }

    pub fn contains(&self, port: u16) -> bool {
        self.0[usize::from(port) / 64].load(Ordering::Relaxed) & 1 << (port % 64) != 0
    }
}

/// Ports on which this process ever listened.
static OWN_PORTS: Ports = Ports::new();

/// The socket listens now.
pub fn note_listening(fd: c_int, page: Option<&Page>) {
    if let Some(Target::Address { port: Some(port), .. }) = Address::own(fd).as_ref().map(Address::target) {
        OWN_PORTS.add(port);
        if let Some(page) = page {
            page.ports.add(port);
        }
    }
}

/// The socket was connected, or is being connected, to that address.
pub fn note_connection(fd: c_int, address: &Address, page: &Page) {
    let is_inside = match address.target() {
        Target::Address { ip, port: Some(port) } => {
            ip.is_loopback() && (OWN_PORTS.contains(port) || page.ports.contains(port))
        }
        Target::Unix { .. } => is_own_peer(fd, page),
        _ => true,
    };
    if is_inside || option(fd, libc::SO_TYPE) != Some(libc::SOCK_STREAM) {
        return;
    }
    let is_free = |owing: &&Owing| {
        let place = &owing.fd;
        place.load(Ordering::Relaxed) == fd + 1
            || place.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(owing) = OWING.iter().find(is_free) {
        owing.until_ns.store(real_ns() + GREETING_NS, Ordering::Release);
        KNOWN.fetch_add(1, Ordering::AcqRel);
    }
}

fn is_own_peer(fd: c_int, page: &Page) -> bool {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer is as long as `len` says.
    let error =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, peer.as_mut_ptr().cast(), &mut len) };
    // SAFETY: zeroed or filled.
    let process = unsafe { peer.assume_init() }.pid;
    error != 0 || page.lock().table().processes.contains(&process)
}

fn option(fd: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the buffer is as long as `len` says.
    let error = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut len) };
    (error == 0).then_some(value)
}

#[inline]
fn find(fd: c_int) -> Option<&'static Owing> {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    OWING.iter().find(|owing| owing.fd.load(Ordering::Relaxed) == fd + 1)
}

/// Whether the descriptor is a stream to outside.
#[inline]
pub fn is_known(fd: c_int) -> bool {
    find(fd).is_some()
}

/// Something was sent: an answer is owed.
#[inline]
pub fn note_sent(fd: c_int) {
    if let Some(owing) = find(fd).or_else(|| meet(fd)) {
        owing.until_ns.store(real_ns() + ANSWER_NS, Ordering::Release);
    }
}

/// So much was received: nothing is owed but perhaps the rest, and nothing at all by one who has hung up.
#[inline]
pub fn note_received(fd: c_int, count: usize) {
    if let Some(owing) = find(fd) {
        let until_ns = if count == 0 { 0 } else { real_ns() + REST_NS };
        owing.until_ns.store(until_ns, Ordering::Release);
    }
}

/// Descriptors above this that were connected before the sandbox do not count.
const MET_MAX: usize = 4096;

/// For each descriptor the sandbox in which it was looked at, or in which it came to be.
static MET: [AtomicU64; MET_MAX] = [const { AtomicU64::new(0) }; MET_MAX];

/// The descriptor came to be inside: if it is connected, [`note_connection`] is told.
pub fn note_new(fd: c_int) {
    if let (Some(page), Some(met)) = (parking::page_now(), usize::try_from(fd).ok().and_then(|fd| MET.get(fd))) {
        met.store(page.generation.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A thread of the sandbox sends on a descriptor that is not known. It may be a connection from before the sandbox, such as
/// that of a pool which a session keeps. Each descriptor is looked at once.
#[inline]
fn meet(fd: c_int) -> Option<&'static Owing> {
    let page = parking::page_now()?;
    let met = MET.get(usize::try_from(fd).ok()?)?;
    let generation = page.generation.load(Ordering::Relaxed);
    if met.load(Ordering::Relaxed) == generation {
        return None;
    }
    look_at(fd, page, met, generation)
}

#[cold]
fn look_at(fd: c_int, page: &Page, met: &AtomicU64, generation: u64) -> Option<&'static Owing> {
    let _call = Call::enter()?;
    met.store(generation, Ordering::Relaxed);
    let errno = kernel::errno();
    if let Some(peer) = Address::peer(fd) {
        note_connection(fd, &peer, page);
    }
    kernel::set_errno(errno);
    find(fd)
}

/// The descriptor is closed.
#[inline]
pub fn forget(fd: c_int) {
    if let Some(owing) = find(fd) {
        owing.until_ns.store(0, Ordering::Release);
        owing.fd.store(0, Ordering::Release);
        KNOWN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether an answer from outside may be on its way.
pub fn is_owed() -> bool {
    if KNOWN.load(Ordering::Acquire) == 0 {
        return false;
    }
    let now_ns = real_ns();
    OWING.iter().any(|owing| owing.until_ns.load(Ordering::Acquire) > now_ns)
}

fn real_ns() -> i64 {
    kernel::read(libc::CLOCK_MONOTONIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_owed_until_it_comes_or_the_descriptor_goes() {
        let ports = Ports::new();
        ports.add(65535);
        assert!(ports.contains(65535) && !ports.contains(80));
        let fd = 777;
        OWING[0].fd.store(fd + 1, Ordering::Relaxed);
        KNOWN.store(1, Ordering::Relaxed);
        note_sent(fd);
        assert!(is_owed());
        note_received(fd, 1);
        assert!(is_owed(), "the rest may be on its way");
        note_received(fd, 0);
        assert!(!is_owed());
        note_sent(fd);
        forget(fd);
        assert!(!is_owed() && find(fd).is_none());
    }
}
