//! How many bytes reads get from pipes and sockets: what is there depends on when others write, so it is written down, and a
//! replay takes no more. The bytes themselves come from whoever writes them.

use crate::glance::{followed, pace, place, PATIENCE_NS};
use crate::host::Registered;
use crate::parking;
use crate::settle::real_ns;
use core::ffi::c_int;
use hermetic_engine::waits::Pace;
use hermetic_journal::WaitKind;
use hermetic_sys::clock as kernel;
use libc::pollfd;

/// How often a replay looks whether more bytes have come.
const PAUSE_NS: i64 = 200_000;

/// Runs a call that takes up to so many bytes from a descriptor, and is told how many it may take: a replay takes no more than
/// the recording did.
#[inline]
pub fn taking(fd: c_int, len: usize, take: impl FnOnce(usize) -> isize) -> isize {
    match pace() {
        Some(pace) if parking::is_stream(fd) => taking_followed(pace, fd, len, take),
        _ => take(len),
    }
}

fn taking_followed(pace: Pace, fd: c_int, len: usize, take: impl FnOnce(usize) -> isize) -> isize {
    if pace == Pace::Real {
        let count = take(len);
        u32::try_from(count).into_iter().for_each(note_got);
        return count;
    }
    let asked = followed().and_then(|(mut call, _)| parking::ask(&mut call, WaitKind::Socket, None));
    let (Some(asked), Some(place)) = (asked, place()) else { return take(len) };
    let next = parking::with_order(&place, |order, pedigree| order.next_got(pedigree, asked.site)).flatten();
    // Nothing is what comes at the end, and no allowance.
    let allowed = next.map(|got| got as usize).filter(|&got| got > 0);
    allowed.into_iter().for_each(|allowed| await_bytes(fd, len.min(allowed)));
    let count = take(allowed.map_or(len, |allowed| len.min(allowed)));
    if count >= 0 {
        parking::with_order(&place, |order, pedigree| order.take_got(pedigree, asked.site));
    }
    count
}

/// Waits until as many bytes are there as were taken at once when recorded, unless there is nothing yet or no more will come.
fn await_bytes(fd: c_int, count: usize) {
    let end_ns = real_ns().saturating_add(PATIENCE_NS);
    let mut ending = [pollfd { fd, events: libc::POLLRDHUP, revents: 0 }];
    while (1..count).contains(&parking::bytes_there(fd)) && real_ns() < end_ns {
        // The data that are there end no wait for their end.
        if parking::wait_for_ready(&mut ending, PAUSE_NS) {
            return;
        }
    }
}

fn note_got(count: u32) {
    let Some((mut call, _)) = followed() else { return };
    let errno = kernel::errno();
    let (sandbox, thread) = call.parts();
    sandbox.record_got(thread, &Registered, count);
    kernel::set_errno(errno);
}
