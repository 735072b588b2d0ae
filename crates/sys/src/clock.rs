//! Real clocks, real sleep, real entropy.
//!
//! This library's own relocation slots are never rewritten, so the plain libc calls below are the real ones (invariant H1).

use core::mem::MaybeUninit;

const NANOS: i64 = 1_000_000_000;

/// Nanoseconds of a kernel clock, for example `libc::CLOCK_REALTIME`. Zero if the kernel does not know the clock.
pub fn read(clock: libc::clockid_t) -> i64 {
    let mut value = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for one timespec (H1: the real function).
    unsafe { libc::clock_gettime(clock, value.as_mut_ptr()) };
    // SAFETY: zeroed or filled; every bit pattern is a timespec.
    let value = unsafe { value.assume_init() };
    value.tv_sec * NANOS + value.tv_nsec
}

/// Really waits, through signals.
pub fn sleep(ns: i64) {
    let mut left = libc::timespec { tv_sec: ns / NANOS, tv_nsec: ns % NANOS };
    loop {
        let request = left;
        // SAFETY: both pointers are valid for one timespec each.
        let result = unsafe { libc::nanosleep(&request, &mut left) };
        if result == 0 || errno() != libc::EINTR {
            return;
        }
    }
}

/// Fills the buffer with the kernel's entropy. False if the kernel refuses.
pub fn entropy(mut buffer: &mut [u8]) -> bool {
    while !buffer.is_empty() {
        // SAFETY: the pointer and length describe the buffer.
        let got = unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(got) {
            Ok(count) => buffer = &mut buffer[count..],
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return false,
        }
    }
    true
}

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: glibc returns a valid address for the calling thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; the value is a plain integer.
    unsafe { *place }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: glibc returns a valid address for the calling thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place = value };
}
