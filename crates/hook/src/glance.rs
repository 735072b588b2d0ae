//! Calls that might wait and need not: what they wait for is there, or they are only asked to look.
//!
//! The interpreter gives its lock away around them, so a loop of such calls lets other threads run. While a test is recorded
//! or replayed that is no matter of chance: a thread that is ready gets its turn here, and the journal tells at which of many
//! equal calls.

use crate::guard::{self, Call};
use crate::host::Registered;
use crate::parking;
use hermetic_engine::order::Glanced;
use hermetic_engine::waits::Pace;
use hermetic_engine::{Host, Sandbox};
use hermetic_journal::WaitKind;
use hermetic_sys::clock as kernel;

/// A thread of the interpreter, which has given its lock away, lets others run if the seed will have it; see
/// `schedule="seeded"`.
pub fn offer_turn() {
    match guard::active().map(Sandbox::pace) {
        Some(Pace::Virtual) => parking::offer_turn_now(),
        Some(Pace::Real | Pace::Recorded) => {
            Glance::new(WaitKind::Other).judge(None, || true);
        }
        Some(Pace::Off) | None => {}
    }
}

/// One call that looks before it waits.
pub struct Glance {
    kind: WaitKind,
    has_yielded: bool,
    has_waited: bool,
}

/// What becomes of a call before it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Look,
    /// Others have had their turn, so what it waits for may be gone again.
    Judge,
    /// It waited when recorded, so it waits.
    Wait,
    /// It did not wait when recorded. What it waits for is about to come, and it keeps its turn until then.
    Keep,
}

impl Glance {
    pub fn new(kind: WaitKind) -> Glance {
        Glance { kind, has_yielded: false, has_waited: false }
    }

    /// The call has waited: what it finds now is what it waited for.
    pub fn waited(&mut self) {
        self.has_waited = true;
    }

    /// The call is about to look. It may wait for `ns`, but need not if it `is_ready`. Keeps `errno`.
    pub fn judge(&mut self, ns: Option<i64>, is_ready: impl FnOnce() -> bool) -> Verdict {
        let errno = kernel::errno();
        let verdict = self.judged(ns, is_ready).unwrap_or(Verdict::Look);
        kernel::set_errno(errno);
        verdict
    }

    fn judged(&mut self, ns: Option<i64>, is_ready: impl FnOnce() -> bool) -> Option<Verdict> {
        let mut call = Call::enter()?;
        let pace = call.sandbox.pace();
        // One that keeps the interpreter's lock lets nobody run.
        let is_followed = call.thread().seat.is_host && !Registered.is_running();
        if !is_followed || self.has_waited {
            return None;
        }
        match pace {
            Pace::Real if is_ready() => self.record(call, ns),
            Pace::Recorded => self.replay(call, ns),
            _ => None,
        }
    }

    fn record(&mut self, mut call: Call, ns: Option<i64>) -> Option<Verdict> {
        let place = parking::place_of(call.thread())?;
        // Once in a call: two that never take what is there would go on for ever.
        let yields = !self.has_yielded && place.page.lock().scheduler().is_awaited(place.slot);
        if !yields {
            let (sandbox, thread) = call.parts();
            sandbox.count_look(thread);
            return None;
        }
        self.has_yielded = true;
        let asked = parking::ask(&mut call, self.kind, ns);
        parking::step_aside(call, place, asked);
        Some(Verdict::Judge)
    }

    fn replay(&mut self, mut call: Call, ns: Option<i64>) -> Option<Verdict> {
        let place = parking::place_of(call.thread())?;
        let asked = parking::ask(&mut call, self.kind, ns)?;
        Some(match parking::glance(&place, &asked)? {
            Glanced::Looked => Verdict::Keep,
            Glanced::Waited => Verdict::Wait,
            Glanced::Yielded => {
                parking::step_aside(call, place, Some(asked));
                Verdict::Judge
            }
        })
    }
}
