//! What outsiders may see of this process: which of its sandboxes it is in at the moment.
//!
//! For each folder that somebody follows clocks through, this process has a file there that is named after it, the *view*,
//! and one for each of its levels, `PROCESS.LEVEL`, which is the front of that level's page. Written under the desk's lock.

use crate::fork;
use crate::front;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use hermetic_sys::task;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Lies at the beginning of the file. Followers map it for reading only.
#[repr(C)]
pub struct View {
    /// [`front::VERSION`], once the rest is there.
    pub version: AtomicU32,
    /// When the process began: a file of a dead process is nobody's.
    pub started: AtomicU64,
    /// The level that the process is in, plus one, in the lowest byte; 0 there for the real world. Any other value after each
    /// change.
    pub sight: AtomicU64,
}

/// The bits of a sight that hold the level.
pub const LEVEL_BITS: u32 = 8;

pub struct Views {
    /// The process that they are of: a forked child makes its own.
    process: i32,
    shown: Vec<Shown>,
    changes: u64,
}

struct Shown {
    folder: PathBuf,
    view: &'static View,
}

/// What a level is shown by: its number and its front's descriptor.
pub type Level = (usize, i32);

impl Views {
    pub const fn new() -> Views {
        Views { process: 0, shown: Vec::new(), changes: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Shows this process in a folder. `levels` are those that it has made so far.
    pub fn add(&mut self, folder: &[u8], levels: &[Level]) -> Result<(), String> {
        self.renew();
        let folder = Path::new(std::ffi::OsStr::from_bytes(folder));
        if self.shown.iter().any(|shown| shown.folder == folder) {
            return Ok(());
        }
        for level in levels {
            self.name_level(folder, level)?;
        }
        let view = make(&folder.join(self.process.to_string())).ok_or_else(|| refused(folder))?;
        self.shown.push(Shown { folder: folder.to_owned(), view });
        Ok(())
    }

    /// Shows it there no more. Whoever still follows sees the real world.
    pub fn remove(&mut self, folder: &[u8]) {
        let folder = Path::new(std::ffi::OsStr::from_bytes(folder));
        let Some(at) = self.shown.iter().position(|shown| shown.folder == folder) else { return };
        let shown = self.shown.swap_remove(at);
        if self.process == fork::owner() {
            shown.view.sight.store(0, Ordering::Release);
            let _ = std::fs::remove_file(shown.folder.join(self.process.to_string()));
        }
        let place = core::ptr::from_ref(shown.view).cast_mut().cast();
        // SAFETY: `make` mapped it, and the last reference to it is gone.
        unsafe { libc::munmap(place, front::LEN) };
    }

    /// A level was made.
    pub fn add_level(&mut self, level: Level) {
        self.renew();
        for shown in &self.shown {
            // Where it cannot be shown, followers see the real world.
            let _ = self.name_level(&shown.folder, &level);
        }
    }

    /// The process is in this level of its own now, or in none.
    pub fn set_sight(&mut self, level: Option<usize>) {
        if self.process != fork::owner() {
            return;
        }
        self.changes += 1;
        let sight = self.changes << LEVEL_BITS | level.map_or(0, |level| level as u64 + 1);
        for shown in &self.shown {
            shown.view.sight.store(sight, Ordering::Release);
        }
    }

    /// In a forked child: what is shown is its parent, so it makes views of its own.
    fn renew(&mut self) {
        if self.process == fork::owner() {
            return;
        }
        self.process = fork::owner();
        for shown in core::mem::take(&mut self.shown) {
            if let Some(view) = make(&shown.folder.join(self.process.to_string())) {
                self.shown.push(Shown { view, ..shown });
            }
        }
    }

    fn name_level(&self, folder: &Path, &(level, fd): &Level) -> Result<(), String> {
        let path = folder.join(format!("{}.{level}", self.process));
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| "the folder has a NUL".to_owned())?;
        front::name(fd, &path).map_err(|error| format!("cannot show a clock as {}: {error}", path.to_string_lossy()))
    }
}

fn refused(folder: &Path) -> String {
    format!("cannot show clocks in {}: {}", folder.display(), std::io::Error::last_os_error())
}

/// A view of this process, that shows the real world so far.
fn make(path: &Path) -> Option<&'static View> {
    // One that a dead process of this number has left.
    let _ = std::fs::remove_file(path);
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a C string and flags.
    let fd = front::filled(unsafe { libc::open(path.as_ptr(), flags, 0o644) })?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: maps a file at an address of the kernel's choice.
    let data = unsafe { libc::mmap(core::ptr::null_mut(), front::LEN, protection, libc::MAP_SHARED, fd, 0) };
    // SAFETY: our descriptor; the map keeps the memory.
    unsafe { libc::close(fd) };
    if data == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the map is long enough, page aligned, and every bit pattern is a view; `remove` unmaps the last reference.
    let view = unsafe { &*data.cast::<View>() };
    view.started.store(task::origin(fork::owner())?.started, Ordering::Relaxed);
    view.version.store(front::VERSION, Ordering::Release);
    Some(view)
}
