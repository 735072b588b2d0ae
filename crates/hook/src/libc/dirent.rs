//! `<dirent.h>`: directory listings in an order that the file system does not decide.
//!
//! The first `readdir` of a stream reads all of it into memory of our own, puts it into order, and hands it out from there.

use crate::guard::Call;
use crate::host::Registered;
use crate::table::hooks;
use core::ffi::{c_int, c_long, CStr};
use hermetic_engine::sandbox::Mode;
use hermetic_sys::map::Region;
use libc::{dirent64, DIR};
use std::sync::{Mutex, MutexGuard};

hooks! {
    readdir(stream: *mut DIR) -> *mut dirent64;
    readdir64(stream: *mut DIR) -> *mut dirent64;
    readdir_r(stream: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int;
    readdir64_r(stream: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int;
    rewinddir(stream: *mut DIR);
    telldir(stream: *mut DIR) -> c_long;
    seekdir(stream: *mut DIR, place: c_long);
    closedir(stream: *mut DIR) -> c_int;
}

/// Streams listed at the same time. Further ones keep the file system's order.
const STREAMS_MAX: usize = 256;

/// An ordered directory.
pub struct Listing {
    stream: usize,
    /// The entries, one after the other, as the kernel made them.
    bytes: Region<u64>,
    /// Offset and length of each entry, in words.
    entries: Region<Entry>,
    next: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    words: u32,
}

static LISTINGS: Mutex<[Option<Listing>; STREAMS_MAX]> = Mutex::new([const { None }; STREAMS_MAX]);

fn listings() -> MutexGuard<'static, [Option<Listing>; STREAMS_MAX]> {
    LISTINGS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// This file's lock.
#[allow(dead_code, reason = "held, not read")]
pub struct Held(MutexGuard<'static, [Option<Listing>; STREAMS_MAX]>);

/// Holds the lock, so that a fork does not copy it half-way.
pub fn lock() -> Held {
    Held(listings())
}

/// Offset of the name in an entry; glibc's record is the kernel's.
const NAME_OFFSET: usize = core::mem::offset_of!(dirent64, d_name);
const WORD: usize = size_of::<u64>();

/// The name in an entry, up to its NUL.
fn name(words: &[u64]) -> &[u8] {
    // SAFETY: eight bytes a word; any byte is a byte.
    let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * WORD) };
    let rest = &bytes[NAME_OFFSET.min(bytes.len())..];
    CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes)
}

impl Listing {
    /// Reads the whole stream. None where the machine has no memory left.
    ///
    /// # Safety
    /// `stream` is an open directory stream.
    unsafe fn read(stream: *mut DIR) -> Option<Listing> {
        let mut listing = Listing { stream: stream as usize, bytes: Region::new(), entries: Region::new(), next: 0 };
        loop {
            // SAFETY: the caller's promise.
            let entry = unsafe { real::readdir64(stream) };
            // SAFETY: null at the end, else an entry that lives until the next call.
            let Some(entry) = (unsafe { entry.as_ref() }) else { return Some(listing) };
            let words = usize::from(entry.d_reclen).div_ceil(WORD);
            let start = listing.bytes.as_slice().len();
            // SAFETY: the kernel aligns entries to words and says how long they are.
            let record = unsafe { core::slice::from_raw_parts(core::ptr::from_ref(entry).cast::<u64>(), words) };
            let place = Entry { start: u32::try_from(start).ok()?, words: words as u32 };
            if !listing.bytes.extend(record) || !listing.entries.push(place) {
                return None;
            }
        }
    }

    fn order(&mut self, call: &mut Call) {
        let bytes = self.bytes.as_slice();
        let record = |entry: &Entry| &bytes[entry.start as usize..(entry.start + entry.words) as usize];
        let (sandbox, thread) = call.parts();
        if sandbox.order_mode() == Mode::Record {
            let mut names = Region::new();
            for (index, entry) in self.entries.as_slice().iter().enumerate() {
                if index > 0 {
                    names.push(0);
                }
                names.extend(name(record(entry)));
            }
            sandbox.record_listing(thread, &Registered, names.as_slice());
            return;
        }
        let bytes = self.bytes.as_slice();
        let name_of = |entry: &Entry| name(&bytes[entry.start as usize..(entry.start + entry.words) as usize]);
        sandbox.order(thread, &Registered, self.entries.as_mut_slice(), name_of);
    }

    fn next(&mut self) -> *mut dirent64 {
        let Some(&entry) = self.entries.as_slice().get(self.next) else { return core::ptr::null_mut() };
        self.next += 1;
        self.bytes.as_mut_slice()[entry.start as usize..].as_mut_ptr().cast()
    }
}

/// The next entry of an ordered stream. None: the stream is not ordered, ask libc.
///
/// # Safety
/// `stream` is an open directory stream.
unsafe fn ordered(stream: *mut DIR) -> Option<*mut dirent64> {
    let mut listings = listings();
    let mut free = None;
    for (index, slot) in listings.iter_mut().enumerate() {
        match slot {
            Some(listing) if listing.stream == stream as usize => return Some(listing.next()),
            None if free.is_none() => free = Some(index),
            _ => {}
        }
    }
    let mut call = Call::enter()?;
    if call.sandbox.order_mode() == Mode::Off {
        return None;
    }
    let slot = &mut listings[free?];
    // SAFETY: the caller's promise.
    let mut listing = unsafe { Listing::read(stream) }?;
    listing.order(&mut call);
    Some(slot.insert(listing).next())
}

/// Runs `act` on the stream's listing, if it has one.
fn with<R>(stream: *mut DIR, act: impl FnOnce(&mut Listing) -> R) -> Option<R> {
    let mut listings = listings();
    listings.iter_mut().flatten().find(|listing| listing.stream == stream as usize).map(act)
}

fn forget(stream: *mut DIR) {
    let mut listings = listings();
    if let Some(slot) =
        listings.iter_mut().find(|slot| slot.as_ref().is_some_and(|listing| listing.stream == stream as usize))
    {
        *slot = None;
    }
}

/// Nothing can be ordered, and no listing can be there, while nobody was in a sandbox.
#[inline]
fn is_idle() -> bool {
    crate::guard::active().is_none() && !HAS_ORDERED.load(core::sync::atomic::Ordering::Relaxed)
}

static HAS_ORDERED: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

pub unsafe extern "C" fn readdir(stream: *mut DIR) -> *mut dirent64 {
    // SAFETY: the argument is the program's. On 64-bit machines both names are one function.
    unsafe { readdir64(stream) }
}

pub unsafe extern "C" fn readdir64(stream: *mut DIR) -> *mut dirent64 {
    if !is_idle() && !stream.is_null() {
        // SAFETY: the program's promise to libc.
        if let Some(entry) = unsafe { ordered(stream) } {
            HAS_ORDERED.store(true, core::sync::atomic::Ordering::Relaxed);
            return entry;
        }
    }
    // SAFETY: the argument is the program's.
    unsafe { real::readdir64(stream) }
}

/// # Safety
/// As for `readdir_r`.
unsafe fn copy_next(stream: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> Option<c_int> {
    if is_idle() || stream.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let next = unsafe { ordered(stream) }?;
    HAS_ORDERED.store(true, core::sync::atomic::Ordering::Relaxed);
    // SAFETY: null at the end, else an entry of ours.
    let len = unsafe { next.as_ref() }.map_or(0, |next| usize::from(next.d_reclen).min(size_of::<dirent64>()));
    // SAFETY: the program's entry is a whole `dirent64`, and ours is `len` bytes long.
    unsafe { core::ptr::copy_nonoverlapping(next.cast::<u8>(), entry.cast::<u8>(), len) };
    // SAFETY: the program's pointer.
    unsafe { *out = if len == 0 { core::ptr::null_mut() } else { entry } };
    Some(0)
}

pub unsafe extern "C" fn readdir_r(stream: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int {
    // SAFETY: the arguments are the program's.
    match unsafe { copy_next(stream, entry, out) } {
        Some(result) => result,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::readdir_r(stream, entry, out) },
    }
}

pub unsafe extern "C" fn readdir64_r(stream: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int {
    // SAFETY: the arguments are the program's.
    match unsafe { copy_next(stream, entry, out) } {
        Some(result) => result,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::readdir64_r(stream, entry, out) },
    }
}

pub unsafe extern "C" fn rewinddir(stream: *mut DIR) {
    if !is_idle() {
        // The directory may have changed: the next call reads it again.
        forget(stream);
    }
    // SAFETY: the argument is the program's.
    unsafe { real::rewinddir(stream) }
}

pub unsafe extern "C" fn telldir(stream: *mut DIR) -> c_long {
    if !is_idle() {
        if let Some(place) = with(stream, |listing| listing.next as c_long) {
            return place;
        }
    }
    // SAFETY: the argument is the program's.
    unsafe { real::telldir(stream) }
}

pub unsafe extern "C" fn seekdir(stream: *mut DIR, place: c_long) {
    if !is_idle() && with(stream, |listing| listing.next = usize::try_from(place).unwrap_or(0)).is_some() {
        return;
    }
    // SAFETY: the arguments are the program's.
    unsafe { real::seekdir(stream, place) }
}

pub unsafe extern "C" fn closedir(stream: *mut DIR) -> c_int {
    if !is_idle() {
        forget(stream);
    }
    // SAFETY: the argument is the program's.
    unsafe { real::closedir(stream) }
}
