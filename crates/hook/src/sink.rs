//! Where a raw journal goes: a mapped file that is used again for the next test.

use core::sync::atomic::{AtomicU64, Ordering};
use hermetic_engine::recorder::JournalFile;
use hermetic_journal::{preamble::COMMITTED_OFFSET, Sink};
use hermetic_sys::map::GrowingFile;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// First reservation; a typical test fits.
const LEN_MIN: usize = 256 * 1024;
/// Growth doubles up to this step.
const STEP_MAX: usize = 64 * 1024 * 1024;

/// A scratch journal.
pub struct Scratch {
    path: Vec<u8>,
    file: GrowingFile,
}

impl Scratch {
    pub fn create(path: &[u8]) -> io::Result<Scratch> {
        let name = CString::new(path).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if let Some(folder) = std::path::Path::new(OsStr::from_bytes(path)).parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(Scratch { path: path.to_vec(), file: GrowingFile::create(&name, LEN_MIN)? })
    }

    fn committed(&self) -> &AtomicU64 {
        let word = self.file.bytes()[COMMITTED_OFFSET..COMMITTED_OFFSET + 8].as_ptr();
        // SAFETY: inside the mapping, which is page aligned; the offset is a multiple of eight. Readers after a crash and
        // this process only ever touch it as this atomic.
        unsafe { &*word.cast::<AtomicU64>() }
    }
}

impl JournalFile for Scratch {
    fn path(&self) -> &[u8] {
        &self.path
    }

    fn bytes(&self) -> &[u8] {
        let bytes = self.file.bytes();
        let committed = self.committed().load(Ordering::Acquire);
        &bytes[..usize::try_from(committed).map_or(0, |len| len.min(bytes.len()))]
    }
}

const _: () = assert!(COMMITTED_OFFSET.is_multiple_of(8));

impl Sink for Scratch {
    fn reserve(&mut self, end: usize) -> bool {
        let len = self.file.len();
        if end <= len {
            return true;
        }
        let grown = end.max(len + len.min(STEP_MAX)).next_multiple_of(LEN_MIN);
        self.file.grow(grown).is_ok()
    }

    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.file.bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    #[inline]
    fn publish(&mut self, len: u64) {
        self.committed().store(len.to_le(), Ordering::Release);
    }
}
