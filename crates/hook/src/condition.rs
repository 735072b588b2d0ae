//! Which clock a condition variable waits on.
//!
//! `pthread_cond_timedwait` does not say; the condition was told when it was made. glibc keeps one bit for that inside
//! `pthread_cond_t`, at a place that it may move. So the place is found while attaching, by comparing two conditions that
//! differ in nothing else.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t};

/// Byte offset times 256 plus the bit's mask, or zero while unknown.
static PLACE: AtomicUsize = AtomicUsize::new(0);

const SIZE: usize = size_of::<pthread_cond_t>();

/// Finds the bit. Not for hooks.
pub fn learn() {
    let (wall, monotonic) = (sample(libc::CLOCK_REALTIME), sample(libc::CLOCK_MONOTONIC));
    let mut differing = (0..SIZE).filter(|&at| wall[at] != monotonic[at]);
    if let (Some(at), None) = (differing.next(), differing.next()) {
        let mask = wall[at] ^ monotonic[at];
        if mask.is_power_of_two() && monotonic[at] & mask != 0 {
            PLACE.store(at << 8 | usize::from(mask), Ordering::Release);
        }
    }
}

fn sample(clock: clockid_t) -> [u8; SIZE] {
    let mut attributes = MaybeUninit::<pthread_condattr_t>::zeroed();
    let mut condition = MaybeUninit::<pthread_cond_t>::zeroed();
    // SAFETY: valid for writing.
    unsafe { libc::pthread_condattr_init(attributes.as_mut_ptr()) };
    // SAFETY: initialised above.
    unsafe { libc::pthread_condattr_setclock(attributes.as_mut_ptr(), clock) };
    // SAFETY: valid for writing, and the attributes are initialised.
    unsafe { libc::pthread_cond_init(condition.as_mut_ptr(), attributes.as_ptr()) };
    // SAFETY: zeroed, then initialised.
    let condition = unsafe { condition.assume_init() };
    // SAFETY: a condition is plain bytes to whoever only looks at it, and glibc's needs no destruction while unused.
    unsafe { core::mem::transmute::<pthread_cond_t, [u8; SIZE]>(condition) }
}

/// The clock of an initialised condition.
///
/// # Safety
/// `condition` points to a condition.
pub unsafe fn clock(condition: *const pthread_cond_t) -> clockid_t {
    let place = PLACE.load(Ordering::Relaxed);
    if place == 0 {
        return libc::CLOCK_REALTIME;
    }
    // SAFETY: the caller's promise; the offset lies inside the condition.
    let byte = unsafe { condition.cast::<u8>().add(place >> 8) };
    // SAFETY: as above; other threads may change other bits of the word, which a volatile read tolerates.
    let value = unsafe { byte.read_volatile() };
    if value & (place & 0xff) as u8 != 0 {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_REALTIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_is_found_in_this_glibc() {
        learn();
        assert_ne!(PLACE.load(Ordering::Relaxed), 0);
        for id in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC] {
            let bytes = sample(id);
            // SAFETY: the bytes of a condition.
            assert_eq!(unsafe { clock(bytes.as_ptr().cast()) }, id);
        }
    }
}
