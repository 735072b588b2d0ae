//! What is known of file descriptors: which are random devices, which were judged in this sandbox, and which are ours.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Descriptors above this are not tracked; a random device up there gives real bytes, which `doctor` says.
const FDS_MAX: usize = 65_536;

static DEVICES: [AtomicU64; FDS_MAX / 64] = [const { AtomicU64::new(0) }; FDS_MAX / 64];
/// Sockets whose program has set a limit on receiving.
static LIMITED: [AtomicU64; FDS_MAX / 64] = [const { AtomicU64::new(0) }; FDS_MAX / 64];
static JUDGED: [AtomicU64; FDS_MAX] = [const { AtomicU64::new(0) }; FDS_MAX];

/// Descriptors of our own that programs which close everything would take from us.
static KEPT: [AtomicI32; KEPT_MAX] = [const { AtomicI32::new(-1) }; KEPT_MAX];
const KEPT_MAX: usize = 32;
static KEPT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// From now on closing it does nothing. Where there is no place left it can be closed like any other.
pub fn keep(fd: c_int) {
    let index = KEPT_COUNT.load(Ordering::Relaxed);
    if let Some(place) = KEPT.get(index) {
        place.store(fd, Ordering::Relaxed);
        KEPT_COUNT.store(index + 1, Ordering::Release);
    }
}

/// Whether the descriptor is one of ours, which programs do not know.
#[inline]
pub fn is_kept(fd: c_int) -> bool {
    first_kept(fd, fd).is_some()
}

/// The lowest descriptor of ours among these.
#[inline]
pub fn first_kept(first: c_int, last: c_int) -> Option<c_int> {
    let count = KEPT_COUNT.load(Ordering::Acquire).min(KEPT_MAX);
    let kept = KEPT[..count].iter().map(|kept| kept.load(Ordering::Relaxed));
    kept.filter(|fd| (first..=last).contains(fd)).min()
}

type Bits = [AtomicU64; FDS_MAX / 64];

fn place(bits: &'static Bits, fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((bits.get(fd / 64)?, 1 << (fd % 64)))
}

fn set(bits: &'static Bits, fd: c_int, is_set: bool) {
    match (place(bits, fd), is_set) {
        (Some((word, bit)), true) => word.fetch_or(bit, Ordering::Relaxed),
        (Some((word, bit)), false) => word.fetch_and(!bit, Ordering::Relaxed),
        (None, _) => 0,
    };
}

#[inline]
fn is_set(bits: &'static Bits, fd: c_int) -> bool {
    place(bits, fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Whether the path names a source of random bytes.
pub fn is_random_device(path: &[u8]) -> bool {
    path == b"/dev/urandom" || path == b"/dev/random"
}

pub fn set_random(fd: c_int) {
    set(&DEVICES, fd, true);
}

#[inline]
pub fn is_random(fd: c_int) -> bool {
    is_set(&DEVICES, fd)
}

/// Whether receiving from this socket has a limit that its program has set.
#[inline]
pub fn is_limited(fd: c_int) -> bool {
    is_set(&LIMITED, fd)
}

pub fn set_limited(fd: c_int, is_limited: bool) {
    set(&LIMITED, fd, is_limited);
}

/// Whether anything but judgements is known of it.
#[inline]
pub fn is_known(fd: c_int) -> bool {
    is_random(fd) || is_limited(fd)
}

pub fn forget(fd: c_int) {
    set(&DEVICES, fd, false);
    set(&LIMITED, fd, false);
}

/// Whether the descriptor was found harmless in the sandbox of that generation.
#[inline]
pub fn is_judged(fd: c_int, generation: u64) -> bool {
    let judged = usize::try_from(fd).ok().and_then(|fd| JUDGED.get(fd));
    judged.is_some_and(|judged| judged.load(Ordering::Relaxed) == generation)
}

pub fn set_judged(fd: c_int, generation: u64) {
    if let Some(judged) = usize::try_from(fd).ok().and_then(|fd| JUDGED.get(fd)) {
        judged.store(generation, Ordering::Relaxed);
    }
}
