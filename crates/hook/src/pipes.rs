//! Bells for threads that wait in `ppoll`: a pipe each, made on a thread's first such wait and kept for its place.

use crate::page::THREADS_MAX;
use crate::parking::Place;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hermetic_sys::clock as kernel;
use libc::pollfd;

/// The two ends of a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Pipe {
    pub read: i32,
    pub write: i32,
}

/// For each place: both descriptors, plus one so that zero means none.
static PIPES: [AtomicU64; THREADS_MAX] = [const { AtomicU64::new(0) }; THREADS_MAX];

/// Our descriptors stay away from the small numbers that programs like to know.
const FD_MIN: i32 = 400;

/// The pipe of a place in this process. None where there are no descriptors left.
pub fn of(slot: usize) -> Option<Pipe> {
    let known = PIPES[slot].load(Ordering::Relaxed);
    if let Some(both) = known.checked_sub(1) {
        return Some(Pipe { read: (both >> 32) as i32, write: both as i32 });
    }
    let mut fds = [0; 2];
    // SAFETY: two descriptors fit.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return None;
    }
    let pipe = Pipe { read: move_up(fds[0]), write: move_up(fds[1]) };
    PIPES[slot].store(((pipe.read as u64) << 32 | pipe.write as u64) + 1, Ordering::Relaxed);
    Some(pipe)
}

/// Moves a descriptor of ours out of the program's way.
pub fn move_up(fd: i32) -> i32 {
    // SAFETY: our descriptor.
    let moved = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FD_MIN) };
    if moved < 0 {
        return fd;
    }
    // SAFETY: our descriptor, which has a twin now.
    unsafe { libc::close(fd) };
    moved
}

/// Makes the kernel's table of descriptors as large as ours need it. In a process with several threads that waits for all
/// processors (tens of milliseconds on some machines), so it is done once, as early as possible.
pub fn make_room() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: a name and plain flags.
    let fd = unsafe { libc::memfd_create(c"hermetic-room".as_ptr(), libc::MFD_CLOEXEC) };
    if fd >= 0 {
        // SAFETY: our descriptor, wherever it has come to lie.
        unsafe { libc::close(move_up(fd)) };
    }
}

/// Empties the pipe after it rang. A pipe that the program has closed (it may close everything) is forgotten.
pub fn drain(own: &mut pollfd, place: &Place) {
    let mut bytes = [0u8; 64];
    // SAFETY: the buffer is as long as it says.
    let got = unsafe { libc::read(own.fd, bytes.as_mut_ptr().cast(), bytes.len()) };
    if got < 0 && kernel::errno() != libc::EAGAIN && kernel::errno() != libc::EINTR {
        PIPES[place.slot].store(0, Ordering::Relaxed);
        place.page.cell(place.slot).pipe.store(-1, Ordering::Relaxed);
        own.fd = -1;
    }
}

/// Writes to the bell of a thread, which may belong to another process.
pub fn ring(process: i32, fd: i32) {
    if fd < 0 {
        return;
    }
    // SAFETY: no preconditions.
    if process == unsafe { libc::getpid() } {
        // SAFETY: one byte. If the program has closed the pipe, nobody hears, and the waiter's own look finds its turn.
        unsafe { libc::write(fd, c"!".as_ptr().cast(), 1) };
        return;
    }
    let mut path = Path { bytes: [0; 64], len: 0 };
    if write!(path, "/proc/{process}/fd/{fd}").is_err() {
        return;
    }
    // SAFETY: the path ends with a NUL.
    let other = unsafe { libc::open(path.bytes.as_ptr().cast(), libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
    if other >= 0 {
        // SAFETY: one byte into a descriptor opened just now.
        unsafe { libc::write(other, c"!".as_ptr().cast(), 1) };
        // SAFETY: opened above.
        unsafe { libc::close(other) };
    }
}

struct Path {
    bytes: [u8; 64],
    len: usize,
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        self.bytes[..63].get_mut(self.len..end).ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// In a forked child: the pipes are the parent's.
pub fn forget_all() {
    for pipe in &PIPES {
        if let Some(both) = pipe.swap(0, Ordering::Relaxed).checked_sub(1) {
            // SAFETY: the child's copies of our descriptors.
            unsafe { libc::close((both >> 32) as i32) };
            // SAFETY: as above.
            unsafe { libc::close(both as i32) };
        }
    }
}
