//! The front of a clock page: its clocks. It lies in a file of its own, mapped over the page's beginning.
//!
//! The file has no name until somebody outside is to follow the clocks, such as a database server of another user, who can
//! open a path but no descriptor of ours. It is one page of memory and written when it is made, so a file system in memory
//! that fills up later cannot take it away.

use core::ffi::{c_void, CStr};
use core::sync::atomic::{AtomicU32, Ordering};
use hermetic_engine::sandbox::Mode;
use hermetic_engine::time::Clockwork;
use std::ffi::CString;

/// Where files without a name are made: only on the same file system can they be given one.
pub const FOLDER: &CStr = c"/dev/shm";

/// Changes with every change to the layout of what followers read.
pub const VERSION: u32 = 1;

/// One page of memory on every machine that is supported.
pub const LEN: usize = 4096;

/// All-zero bytes are a valid front.
#[repr(C, align(4096))]
pub struct Front {
    pub version: AtomicU32,
    /// How its sandbox's clocks go: one of the constants below.
    mode: AtomicU32,
    pub clockwork: Clockwork,
}

const REAL: u32 = 0;
const SHIFTED: u32 = 1;
const VIRTUAL: u32 = 2;

impl Front {
    pub fn set_mode(&self, mode: Mode) {
        let mode = match mode {
            Mode::Off => REAL,
            Mode::Record => SHIFTED,
            Mode::Virtual | Mode::Replay => VIRTUAL,
        };
        self.mode.store(mode, Ordering::Release);
    }

    /// What the wall clock shows; none where it is real.
    pub fn wall(&self, real: impl FnOnce() -> i64) -> Option<i64> {
        match self.mode.load(Ordering::Acquire) {
            VIRTUAL => Some(self.clockwork.steady_wall()),
            SHIFTED => Some(real().saturating_add(self.clockwork.steady_wall())),
            _ => None,
        }
    }
}

/// A file for a front, not mapped yet. None where the machine refuses.
pub fn create() -> Option<i32> {
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a C string and flags.
    let fd = filled(unsafe { libc::open(FOLDER.as_ptr(), flags, 0o644) }).or_else(|| {
        // No such folder, or no room in it: one that nobody can follow.
        // SAFETY: a C string and flags.
        filled(unsafe { libc::memfd_create(c"hermetic-clocks".as_ptr(), libc::MFD_CLOEXEC) })
    })?;
    Some(crate::pipes::move_up(fd))
}

/// The descriptor of a file made just now, once it has its memory.
pub fn filled(fd: i32) -> Option<i32> {
    if fd < 0 {
        return None;
    }
    let bytes = [0u8; LEN];
    // SAFETY: the buffer is as long as it says.
    let written = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), LEN, 0) };
    // The server that follows may run as somebody else, whatever the mask of this process says.
    // SAFETY: our descriptor.
    unsafe { libc::fchmod(fd, 0o644) };
    if written == LEN as isize {
        return Some(fd);
    }
    // SAFETY: our descriptor.
    unsafe { libc::close(fd) };
    None
}

/// Maps the file over a front's place.
///
/// # Safety
/// The place is the first part of a shared map that is never unmapped.
pub unsafe fn lay(front: &'static Front, fd: i32) -> Option<()> {
    let place = core::ptr::from_ref(front).cast_mut().cast::<c_void>();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: replaces a page that is ours (the caller's promise) by another of the same length.
    let data = unsafe { libc::mmap(place, LEN, protection, libc::MAP_SHARED | libc::MAP_FIXED, fd, 0) };
    if data == libc::MAP_FAILED {
        return None;
    }
    front.version.store(VERSION, Ordering::Release);
    Some(())
}

/// Gives the file a name, in a folder on the file system of [`FOLDER`].
pub fn name(fd: i32, path: &CStr) -> std::io::Result<()> {
    let own = CString::new(format!("/proc/self/fd/{fd}"))?;
    // SAFETY: a C string.
    unsafe { libc::unlink(path.as_ptr()) };
    // SAFETY: C strings and a flag.
    let done =
        unsafe { libc::linkat(libc::AT_FDCWD, own.as_ptr(), libc::AT_FDCWD, path.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

const _: () = assert!(size_of::<Front>() == LEN);
