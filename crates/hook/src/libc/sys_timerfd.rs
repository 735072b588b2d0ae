//! `<sys/timerfd.h>`: timers that are descriptors.

use super::time::clock_of;
use crate::guard::Call;
use crate::table::hooks;
use crate::timers::{self, Setting};
use crate::wait;
use core::ffi::{c_int, c_void};
use hermetic_engine::waits::Pace;
use hermetic_sys::clock::{errno, set_errno};
use libc::{clockid_t, itimerspec, pollfd, ssize_t};

hooks! {
    timerfd_create(id: clockid_t, flags: c_int) -> c_int;
    timerfd_settime(fd: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int;
    timerfd_gettime(fd: c_int, now: *mut itimerspec) -> c_int;
}

pub unsafe extern "C" fn timerfd_create(id: clockid_t, flags: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::timerfd_create(id, flags) };
    if fd >= 0 {
        timers::note(fd, id);
    }
    fd
}

/// Whether the calling thread sees virtual time.
fn is_virtual() -> bool {
    Call::enter().is_some_and(|call| call.sandbox.pace() == Pace::Virtual)
}

/// What the program wants, as a span of virtual time. None: it is for the kernel.
///
/// # Safety
/// `new` is null or points to a valid structure.
unsafe fn wanted(fd: c_int, flags: c_int, new: *const itimerspec) -> Option<Setting> {
    let id = timers::clock_of(fd)?;
    // SAFETY: the caller's promise.
    let mut setting = Setting::read(unsafe { new.as_ref() }?)?;
    if !is_virtual() || flags & !(libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET) != 0 {
        return None;
    }
    clock_of(id)?;
    if flags & libc::TFD_TIMER_ABSTIME != 0 && setting.left_ns != 0 {
        // A moment that has passed is due at once.
        setting.left_ns = wait::remaining(id, setting.left_ns)?.max(1);
    }
    Some(setting)
}

pub unsafe extern "C" fn timerfd_settime(
    fd: c_int,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: the program's promise to libc.
    let Some(setting) = (unsafe { wanted(fd, flags, new) }) else {
        // SAFETY: the arguments are the program's.
        return unsafe { real::timerfd_settime(fd, flags, new, old) };
    };
    let before = timers::look(fd);
    let none = Setting::default().write();
    // SAFETY: our structure and the program's; the kernel's timer is disarmed, and what it had expired is forgotten.
    let result = unsafe { real::timerfd_settime(fd, 0, &none, old) };
    if result != 0 {
        return result;
    }
    // SAFETY: null, or the program's structure.
    if let (Some(old), Some(before)) = (unsafe { old.as_mut() }, before) {
        *old = before.write();
    }
    timers::arm(fd, setting);
    result
}

pub unsafe extern "C" fn timerfd_gettime(fd: c_int, now: *mut itimerspec) -> c_int {
    let setting = if is_virtual() { timers::look(fd) } else { None };
    // SAFETY: null, or the program's structure.
    match (setting, unsafe { now.as_mut() }) {
        (Some(setting), Some(now)) => {
            *now = setting.write();
            0
        }
        // SAFETY: the arguments are the program's.
        _ => unsafe { real::timerfd_gettime(fd, now) },
    }
}

/// Reads how often a timer has expired. None: it counts real time.
///
/// # Safety
/// `buffer` is valid for writing `len` bytes; `real` makes the read really.
pub unsafe fn read(fd: c_int, buffer: *mut c_void, len: usize, real: impl Fn() -> ssize_t) -> Option<ssize_t> {
    if !timers::is_known(fd) || len < size_of::<u64>() || !is_virtual() || !timers::is_virtual(fd) {
        return None;
    }
    timers::expire_due();
    // SAFETY: no preconditions.
    let is_patient = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK == 0;
    if is_patient {
        let mut own = pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        if unsafe { super::poll::poll(&mut own, 1, -1) } < 0 {
            return Some(-1);
        }
    }
    let count = real();
    if count == size_of::<u64>() as ssize_t {
        let kept = errno();
        let expired = timers::take_expired(fd).max(1);
        // SAFETY: the caller's promise; a buffer has no alignment.
        unsafe { buffer.cast::<u64>().write_unaligned(expired) };
        set_errno(kept);
    }
    Some(count)
}
