//! Deadlines of a virtual clock, and waits that are made really all the same.
//!
//! A deadline that a program computed from a virtual clock must never reach the kernel as it is. It becomes a span. Where the
//! wait cannot be parked, it is made for that span, and when it has timed out the virtual clock is at least
//! that far.

use crate::guard::Call;
use crate::libc::time::clock_of;
use hermetic_engine::waits::Pace;
use hermetic_model::clock;
use hermetic_sys::clock as kernel;
use libc::{clockid_t, timespec};

/// A wait under way.
#[derive(Clone, Copy)]
pub struct Span {
    pub ns: i64,
    begin: i64,
}

/// Nanoseconds until a deadline on a kernel clock, as the sandbox shows it. None: the deadline is real, use it as it is.
pub fn remaining(id: clockid_t, deadline_ns: i64) -> Option<i64> {
    let mut call = Call::enter()?;
    let clock = clock_of(id)?;
    let (sandbox, thread) = call.parts();
    sandbox.remaining(thread, clock, deadline_ns, || kernel::read(id))
}

/// Begins a wait until a deadline.
///
/// # Safety
/// A non-null `deadline` points to a timespec.
pub unsafe fn until(id: clockid_t, deadline: *const timespec) -> Option<Span> {
    // SAFETY: the caller's promise.
    let deadline = unsafe { deadline.as_ref() }?;
    let deadline_ns = clock::from_timespec(deadline.tv_sec, deadline.tv_nsec)?;
    let ns = remaining(id, deadline_ns)?;
    Some(Span { ns, begin: begin()? })
}

/// Begins a wait of a given length.
pub fn lasting(ns: i64) -> Option<Span> {
    Some(Span { ns, begin: begin()? })
}

fn begin() -> Option<i64> {
    let sandbox = Call::enter()?.sandbox;
    let real_ns = if sandbox.pace() == Pace::Real { kernel::read(libc::CLOCK_MONOTONIC) } else { 0 };
    Some(sandbox.wait_begin().saturating_add(real_ns))
}

/// Where time is, to measure a wait by; zero outside.
pub fn elapsed() -> i64 {
    begin().unwrap_or(0)
}

/// What is left of a wait of `ns` that began at `begin`.
pub fn left(ns: Option<i64>, begin: i64) -> Option<i64> {
    ns.map(|ns| ns.saturating_sub(elapsed().saturating_sub(begin)).max(0))
}

impl Span {
    /// The same wait, of which only `left` is still to be made.
    pub fn shortened(self, left: Option<i64>) -> Span {
        Span { ns: left.unwrap_or(self.ns), ..self }
    }

    /// The real deadline of this span on a kernel clock.
    pub fn deadline(&self, id: clockid_t) -> timespec {
        let (tv_sec, tv_nsec) = clock::to_timespec(clock::deadline(kernel::read(id), self.ns));
        timespec { tv_sec, tv_nsec }
    }

    /// The wait has timed out.
    pub fn timed_out(self) {
        let Some(call) = Call::enter() else { return };
        call.sandbox.wait_timed_out(self.begin, self.ns);
        call.sandbox.note_move(kernel::read(libc::CLOCK_REALTIME_COARSE));
    }
}
