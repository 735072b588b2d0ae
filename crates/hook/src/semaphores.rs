//! Which semaphores other processes may post.
//!
//! A semaphore that belongs to this process alone can be parked on by its address. One that is shared lies at another address
//! in each process, so only the kernel can tell when it is posted. glibc keeps one word for that inside `sem_t`; the place is
//! found while attaching, by comparing two semaphores that differ in nothing else.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::sem_t;

/// Byte offset plus one, or zero while unknown.
static PLACE: AtomicUsize = AtomicUsize::new(0);
/// What a shared semaphore has there.
static SHARED: AtomicUsize = AtomicUsize::new(0);

const SIZE: usize = size_of::<sem_t>();

/// Finds the place. Not for hooks.
pub fn learn() {
    let (private, shared) = (sample(0), sample(1));
    let mut differing = (0..SIZE).filter(|&at| private[at] != shared[at]);
    if let (Some(at), None) = (differing.next(), differing.next()) {
        SHARED.store(usize::from(shared[at]), Ordering::Release);
        PLACE.store(at + 1, Ordering::Release);
    }
}

fn sample(is_shared: i32) -> [u8; SIZE] {
    let mut semaphore = MaybeUninit::<sem_t>::zeroed();
    // SAFETY: valid for writing.
    unsafe { libc::sem_init(semaphore.as_mut_ptr(), is_shared, 0) };
    // SAFETY: zeroed, then initialised.
    let semaphore = unsafe { semaphore.assume_init() };
    // SAFETY: a semaphore is plain bytes to whoever only looks at it.
    unsafe { core::mem::transmute::<sem_t, [u8; SIZE]>(semaphore) }
}

/// Whether other processes may post it. Unknown counts as no.
///
/// # Safety
/// `semaphore` points to an initialised semaphore.
pub unsafe fn is_shared(semaphore: *const sem_t) -> bool {
    let Some(at) = PLACE.load(Ordering::Relaxed).checked_sub(1) else { return false };
    // SAFETY: the caller's promise; the offset lies inside.
    let byte = unsafe { semaphore.cast::<u8>().add(at) };
    // SAFETY: as above; the word does not change after initialisation.
    let value = unsafe { byte.read_volatile() };
    usize::from(value) == SHARED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_in_this_glibc() {
        learn();
        assert_ne!(PLACE.load(Ordering::Relaxed), 0);
        for shared in [0, 1] {
            let bytes = sample(shared);
            // SAFETY: the bytes of a semaphore.
            assert_eq!(unsafe { is_shared(bytes.as_ptr().cast()) }, shared == 1);
        }
    }
}
