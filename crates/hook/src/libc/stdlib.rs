//! `<stdlib.h>`: libc's own generators that promise unpredictable numbers, and names of temporary files.

use super::sys_random::fill;
use crate::table::hooks;
use core::ffi::c_void;
use hermetic_journal::Source;
use libc::size_t;

hooks! {
    arc4random() -> u32;
    arc4random_buf(buffer: *mut c_void, len: size_t);
    arc4random_uniform(bound: u32) -> u32;
}

fn draw() -> Option<u32> {
    let mut bytes = [0u8; 4];
    // SAFETY: the buffer is ours.
    let is_ours = unsafe { fill(Source::Arc4random, bytes.as_mut_ptr().cast(), bytes.len()) };
    is_ours.then(|| u32::from_ne_bytes(bytes))
}

pub unsafe extern "C" fn arc4random() -> u32 {
    // SAFETY: no arguments.
    draw().unwrap_or_else(|| unsafe { real::arc4random() })
}

pub unsafe extern "C" fn arc4random_buf(buffer: *mut c_void, len: size_t) {
    // SAFETY: the program's promise to libc.
    if !unsafe { fill(Source::Arc4random, buffer, len) } {
        // SAFETY: the arguments are the program's.
        unsafe { real::arc4random_buf(buffer, len) }
    }
}

pub unsafe extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    if bound < 2 {
        return 0;
    }
    let unfair = bound.wrapping_neg() % bound;
    // Numbers below `unfair` would favour small results; each turn succeeds with probability above one half.
    while let Some(number) = draw() {
        if number >= unfair {
            return number % bound;
        }
    }
    // SAFETY: the argument is the program's.
    unsafe { real::arc4random_uniform(bound) }
}
