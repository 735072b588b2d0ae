//! `<unistd.h>` and `syscall`: sleeping, reading random devices, writing to sockets from before.

use super::sys_random::{self, fill};
use super::time::Slept;
use super::{sys_futex, sys_socket, sys_timerfd, time};
use crate::table::hooks;
use crate::{descriptors, outside, reading, timers};
use core::ffi::{c_int, c_long, c_uint, c_void};
use hermetic_journal::Source;
use hermetic_model::clock::{NS_PER_SEC, NS_PER_US};
use libc::{off64_t, size_t, ssize_t, timespec, timeval};

hooks! {
    sleep(seconds: c_uint) -> c_uint;
    usleep(microseconds: c_uint) -> c_int;
    read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t;
    __read_chk(fd: c_int, buffer: *mut c_void, len: size_t, size: size_t) -> ssize_t;
    pread(fd: c_int, buffer: *mut c_void, len: size_t, offset: off64_t) -> ssize_t;
    pread64(fd: c_int, buffer: *mut c_void, len: size_t, offset: off64_t) -> ssize_t;
    write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t;
    writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    closefrom(first: c_int);
    syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
}

pub unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    match time::sleep(i64::from(seconds) * NS_PER_SEC) {
        Slept::Over => 0,
        // libc rounds down what is left.
        Slept::Interrupted { left_ns } => c_uint::try_from(left_ns / NS_PER_SEC).unwrap_or(0),
        // SAFETY: what is left of the program's argument.
        Slept::Really { left_ns } => unsafe { real::sleep(c_uint::try_from(left_ns / NS_PER_SEC).unwrap_or(0)) },
    }
}

pub unsafe extern "C" fn usleep(microseconds: c_uint) -> c_int {
    match time::sleep(i64::from(microseconds) * NS_PER_US) {
        Slept::Over => 0,
        Slept::Interrupted { .. } => {
            hermetic_sys::clock::set_errno(libc::EINTR);
            -1
        }
        // SAFETY: what is left of the program's argument.
        Slept::Really { left_ns } => unsafe { real::usleep(c_uint::try_from(left_ns / NS_PER_US).unwrap_or(0)) },
    }
}

/// # Safety
/// `buffer` is valid for writing `len` bytes.
#[inline]
unsafe fn read_random(fd: c_int, buffer: *mut c_void, len: size_t) -> Option<ssize_t> {
    if !descriptors::is_random(fd) {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { fill(Source::Device, buffer, len) }.then_some(len as ssize_t)
}

pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the program's promise to libc.
    if let Some(count) = unsafe { read_random(fd, buffer, len) } {
        return count;
    }
    // SAFETY: the arguments are the program's.
    let really = || unsafe { real::read(fd, buffer, len) };
    // SAFETY: the program's promise to libc.
    if let Some(count) = unsafe { sys_timerfd::read(fd, buffer, len, really) } {
        return count;
    }
    reading::taking(fd, len, |len| {
        // SAFETY: the arguments are the program's.
        sys_socket::received(fd, sys_socket::receiving(fd, 0, || unsafe { real::read(fd, buffer, len) }))
    })
}

pub unsafe extern "C" fn __read_chk(fd: c_int, buffer: *mut c_void, len: size_t, size: size_t) -> ssize_t {
    if len <= size {
        // SAFETY: the program's promise to libc.
        if let Some(count) = unsafe { read_random(fd, buffer, len) } {
            return count;
        }
    }
    // SAFETY: the arguments are the program's.
    sys_socket::received(fd, sys_socket::receiving(fd, 0, || unsafe { real::__read_chk(fd, buffer, len, size) }))
}

pub unsafe extern "C" fn pread(fd: c_int, buffer: *mut c_void, len: size_t, offset: off64_t) -> ssize_t {
    // SAFETY: the program's promise to libc.
    match unsafe { read_random(fd, buffer, len) } {
        Some(count) => count,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::pread(fd, buffer, len, offset) },
    }
}

pub unsafe extern "C" fn pread64(fd: c_int, buffer: *mut c_void, len: size_t, offset: off64_t) -> ssize_t {
    // SAFETY: the program's promise to libc.
    match unsafe { read_random(fd, buffer, len) } {
        Some(count) => count,
        // SAFETY: the arguments are the program's.
        None => unsafe { real::pread64(fd, buffer, len, offset) },
    }
}

pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    if sys_socket::is_refused(fd) {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    sys_socket::sent(fd, unsafe { real::write(fd, buffer, len) })
}

pub unsafe extern "C" fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t {
    if sys_socket::is_refused(fd) {
        return -1;
    }
    // SAFETY: the arguments are the program's.
    sys_socket::sent(fd, unsafe { real::writev(fd, parts, count) })
}

pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if descriptors::is_kept(fd) {
        return 0;
    }
    // A child of vfork shares these tables with its parent, whose descriptor stays open.
    if (descriptors::is_known(fd) || outside::is_known(fd) || timers::is_known(fd)) && !crate::fork::is_borrowed() {
        descriptors::forget(fd);
        outside::forget(fd);
        timers::forget(fd);
    }
    // SAFETY: the argument is the program's.
    unsafe { real::close(fd) }
}

/// Programs that close whatever they do not know leave us what started programs come in through.
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let highest = c_int::try_from(last).unwrap_or(c_int::MAX);
    let mut begin = c_int::try_from(first).unwrap_or(c_int::MAX);
    let is_closing = flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 && first <= last;
    while let Some(kept) = descriptors::first_kept(begin, highest).filter(|_| is_closing) {
        if kept > begin {
            // SAFETY: a part of the program's range.
            let result = unsafe { real::close_range(begin as c_uint, kept as c_uint - 1, flags) };
            if result != 0 {
                return result;
            }
        }
        if kept == highest {
            return 0;
        }
        begin = kept + 1;
    }
    let begin = if is_closing { begin as c_uint } else { first };
    // SAFETY: the arguments are the program's, but for what was done already.
    unsafe { real::close_range(begin, last, flags) }
}

pub unsafe extern "C" fn closefrom(first: c_int) {
    let begin = first.max(0);
    let is_ours = descriptors::first_kept(begin, c_int::MAX).is_some();
    // SAFETY: the program's promise to libc.
    if !is_ours || unsafe { close_range(begin as c_uint, c_uint::MAX, 0) } != 0 {
        // SAFETY: the argument is the program's.
        unsafe { real::closefrom(first) }
    }
}

/// Programs that spell a system call by number get the same answers as those that call libc.
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    match number {
        // SAFETY: the arguments are the program's, in the order of the libc function.
        libc::SYS_clock_gettime => c_long::from(unsafe { time::clock_gettime(a as c_int, b as *mut timespec) }),
        // SAFETY: as above.
        libc::SYS_gettimeofday => c_long::from(unsafe { time::gettimeofday(a as *mut timeval, b as *mut c_void) }),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        libc::SYS_time => unsafe { time::time(a as *mut libc::time_t) },
        // SAFETY: as above.
        libc::SYS_getrandom => unsafe { sys_random::getrandom(a as *mut c_void, b as size_t, c as c_uint) as c_long },
        // SAFETY: as above.
        libc::SYS_nanosleep => c_long::from(unsafe { time::nanosleep(a as *const timespec, b as *mut timespec) }),
        libc::SYS_clock_nanosleep => {
            // SAFETY: as above.
            let error =
                unsafe { time::clock_nanosleep(a as c_int, b as c_int, c as *const timespec, d as *mut timespec) };
            match error {
                0 => 0,
                // The libc function returns its error, the system call leaves it in errno.
                error => {
                    hermetic_sys::clock::set_errno(error);
                    -1
                }
            }
        }
        // SAFETY: as above.
        libc::SYS_futex => match unsafe { sys_futex::answer(a as *const u32, b as c_int, c as u32, d, f as u32) } {
            Some(result) => result,
            // SAFETY: the arguments are the program's.
            None => unsafe { real::syscall(number, a, b, c, d, e, f) },
        },
        // SAFETY: the arguments are the program's.
        _ => unsafe { real::syscall(number, a, b, c, d, e, f) },
    }
}
