//! Whether descriptors lead nowhere but to this process, so that nobody outside will ever make them ready.

use core::mem::MaybeUninit;
use hermetic_sys::task::{self, EpollTarget};
use libc::pollfd;

/// Standard streams belong to whoever started the process.
const STANDARD_MAX: i32 = 2;
/// Descriptors looked at inside an epoll set; a larger set counts as open to the world.
const EPOLL_MAX: usize = 64;

/// Whether all of them do. No descriptors at all is nothing to wait for.
pub fn are_all(fds: &[pollfd]) -> bool {
    fds.iter().all(|poll| is_inside(poll.fd))
}

/// Whether one does.
pub fn is_inside(fd: i32) -> bool {
    if fd < 0 {
        return true;
    }
    if fd <= STANDARD_MAX {
        return false;
    }
    let mut stat = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: valid for writing.
    if unsafe { libc::fstat64(fd, stat.as_mut_ptr()) } != 0 {
        return true;
    }
    // SAFETY: filled by the call.
    let mode = unsafe { stat.assume_init() }.st_mode & libc::S_IFMT;
    match mode {
        libc::S_IFIFO => true,
        libc::S_IFSOCK => is_near(fd),
        // Anonymous files have no type: eventfd, timerfd, signalfd, epoll.
        0 => is_inside_epoll(fd),
        _ => false,
    }
}

/// A unix socket, or an internet socket that is bound or connected to this machine only.
fn is_near(fd: i32) -> bool {
    match crate::address::Address::local(fd) {
        Some(address) => !address.is_internet() || address.is_loopback(),
        None => false,
    }
}

fn is_inside_epoll(fd: i32) -> bool {
    let mut targets = [EpollTarget::default(); EPOLL_MAX];
    match task::epoll_targets(fd, &mut targets) {
        // Not an epoll set.
        None => true,
        Some(count) if count >= EPOLL_MAX => false,
        Some(count) => targets[..count].iter().all(|target| target.fd != fd && is_inside(target.fd)),
    }
}
