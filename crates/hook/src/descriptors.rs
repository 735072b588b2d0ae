//! What is known of file descriptors: which are random devices, and which were judged in this sandbox.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

/// Descriptors above this are not tracked; a random device up there gives real bytes, which `doctor` says.
const FDS_MAX: usize = 65_536;

static DEVICES: [AtomicU64; FDS_MAX / 64] = [const { AtomicU64::new(0) }; FDS_MAX / 64];
static JUDGED: [AtomicU64; FDS_MAX] = [const { AtomicU64::new(0) }; FDS_MAX];

fn place(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((DEVICES.get(fd / 64)?, 1 << (fd % 64)))
}

/// Whether the path names a source of random bytes.
pub fn is_random_device(path: &[u8]) -> bool {
    path == b"/dev/urandom" || path == b"/dev/random"
}

pub fn set_random(fd: c_int) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

#[inline]
pub fn is_random(fd: c_int) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

pub fn forget(fd: c_int) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
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
