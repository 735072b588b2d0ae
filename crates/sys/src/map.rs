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

/// A growing array in memory of our own, for use inside hooks, where malloc is not allowed. Pages go back when it is
/// dropped.
pub struct Region<T: Copy> {
    data: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl<T: Copy + Send> Send for Region<T> {}

impl<T: Copy> Region<T> {
    const BYTES_MIN: usize = 1 << 16;

    pub const fn new() -> Region<T> {
        Region { data: ptr::null_mut(), len: 0, capacity: 0 }
    }

    /// Appends all of `items`. False: the machine has no memory left, nothing was appended.
    pub fn extend(&mut self, items: &[T]) -> bool {
        if self.capacity - self.len < items.len() && !self.grow(items.len()) {
            return false;
        }
        // SAFETY: `grow` made room for `items.len()` more values behind the first `len`.
        let end = unsafe { self.data.add(self.len) };
        // SAFETY: as above; a borrowed slice cannot overlap memory that belongs to `self`.
        unsafe { ptr::copy_nonoverlapping(items.as_ptr(), end, items.len()) };
        self.len += items.len();
        true
    }

    pub fn push(&mut self, item: T) -> bool {
        self.extend(&[item])
    }

    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub fn as_slice(&self) -> &[T] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the first `len` values were written by `extend`.
        unsafe { core::slice::from_raw_parts(self.data, self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.data.is_null() {
            return &mut [];
        }
        // SAFETY: as above, and `&mut self` makes the borrow exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.data, self.len) }
    }

    fn grow(&mut self, more: usize) -> bool {
        let wanted = (self.len + more).max(self.capacity * 2) * size_of::<T>();
        let bytes = wanted.max(Self::BYTES_MIN).next_multiple_of(Self::BYTES_MIN);
        let data = if self.data.is_null() {
            match zeroed(bytes) {
                Ok(data) => data.cast(),
                Err(_) => return false,
            }
        } else {
            let old = self.capacity * size_of::<T>();
            // SAFETY: the old range is exactly our mapping, and nothing borrows it while `&mut self` is held.
            let data = unsafe { libc::mremap(self.data.cast(), old, bytes, libc::MREMAP_MAYMOVE) };
            if data == libc::MAP_FAILED {
                return false;
            }
            data.cast()
        };
        self.data = data;
        self.capacity = bytes / size_of::<T>();
        true
    }
}

impl<T: Copy> Default for Region<T> {
    fn default() -> Region<T> {
        Region::new()
    }
}

impl<T: Copy> Drop for Region<T> {
    fn drop(&mut self) {
        if !self.data.is_null() {
            // SAFETY: the range is exactly our mapping; nothing borrows it any more.
            unsafe { libc::munmap(self.data.cast(), self.capacity * size_of::<T>()) };
        }
    }
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
    fn a_region_keeps_what_was_put_in() {
        let mut region = Region::<u64>::new();
        assert!(region.as_slice().is_empty());
        for value in 0..100_000 {
            assert!(region.push(value));
        }
        assert!(region.as_slice().iter().copied().eq(0..100_000));
        region.truncate(3);
        region.as_mut_slice().reverse();
        assert_eq!(region.as_slice(), [2, 1, 0]);
    }

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
