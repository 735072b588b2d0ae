//! Memory of our own: zeroed regions for thread records, and growing shared file maps for journals.

use core::ptr;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `len` zeroed bytes that live until the process ends. Pages cost nothing until they are touched.
pub fn zeroed(len: usize) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping touches no existing memory.
    let address = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(address.cast())
}

/// A file mapped for writing that can grow. Blocks are reserved on disk before they are used, so that a full disk is an
/// error of `grow` and never a SIGBUS in the middle of a test.
pub struct GrowingFile {
    file: OwnedFd,
    data: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; the engine keeps it behind a lock.
unsafe impl Send for GrowingFile {}

impl GrowingFile {
    /// Creates (or empties) the file and reserves `len` bytes.
    pub fn create(path: &CStr, len: usize) -> io::Result<GrowingFile> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was opened just now and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        reserve(&file, 0, len)?;
        let flags = libc::MAP_SHARED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: maps a file of at least `len` bytes at an address of the kernel's choice.
        let data = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, file.as_raw_fd(), 0) };
        if data == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(GrowingFile { file, data: data.cast(), len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes the file and its map at least `len` bytes long. The address may change.
    pub fn grow(&mut self, len: usize) -> io::Result<()> {
        reserve(&self.file, self.len, len)?;
        // SAFETY: the old range is exactly our mapping, and no slice of it is borrowed while `&mut self` is held.
        let data = unsafe { libc::mremap(self.data.cast(), self.len, len, libc::MREMAP_MAYMOVE) };
        if data == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.data = data.cast();
        self.len = len;
        Ok(())
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` bytes long and lives as long as `self`.
        unsafe { core::slice::from_raw_parts(self.data, self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the borrow exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our mapping; nothing borrows it any more.
        unsafe { libc::munmap(self.data.cast(), self.len) };
    }
}

fn reserve(file: &OwnedFd, from: usize, to: usize) -> io::Result<()> {
    // SAFETY: the descriptor is open for writing. glibc's fallback for file systems without fallocate writes zeros.
    let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), from as i64, (to - from) as i64) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn a_file_grows_and_keeps_what_it_has() {
        let path = std::env::temp_dir().join(format!("hermetic-map-{}", std::process::id()));
        let name = CString::new(path.to_str().expect("text")).expect("no NUL");
        let mut file = GrowingFile::create(&name, 4096).expect("created");
        file.bytes_mut()[..4].copy_from_slice(b"abcd");
        file.grow(1 << 20).expect("grown");
        assert_eq!((&file.bytes()[..4], file.len()), (&b"abcd"[..], 1 << 20));
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 1 << 20);
        std::fs::remove_file(path).expect("removed");
    }
}
