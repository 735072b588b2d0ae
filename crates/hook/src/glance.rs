//! Calls that look before they wait, and may find that they need not: what they wait for is there, or they are only to look.
//!
//! The interpreter gives its lock away around them, so a loop of such calls lets other threads run. While a test is recorded
//! or replayed that is no matter of chance: a thread that is ready gets its turn here, and the journal tells at which of many
//! equal calls. Nor is it what they find: which of several descriptors are ready depends on when others write to them, so it is
//! written down, and a replay waits for the same ones and shows no others.

use crate::guard::{self, Call};
use crate::host::Registered;
use crate::parking::{self, Place};
use crate::settle::real_ns;
use hermetic_engine::order::{Glanced, Order};
use hermetic_engine::waits::Pace;
use hermetic_engine::{Host, Sandbox};
use hermetic_journal::WaitKind;
use hermetic_sys::clock as kernel;
use hermetic_sys::map::Region;
use libc::pollfd;

/// Which of the descriptors of a call it looks at: bits by their place in its list. None: at all.
pub type Only = Option<u64>;

/// Calls with longer lists look at all of them.
const LIST_MAX: usize = 64;
/// How long a replay waits for what was there when recorded.
pub const PATIENCE_NS: i64 = 2_000_000_000;
/// How often it looks whether another one has become ready.
const PERIOD_NS: i64 = 100_000_000;

/// Whether what the calling thread finds is written down, or shown as it was.
pub fn is_followed() -> bool {
    pace().is_some()
}

/// A thread of the interpreter, which has given its lock away, lets others run if the seed will have it; see
/// `schedule="seeded"`.
pub fn offer_turn() {
    match guard::active().map(Sandbox::pace) {
        Some(Pace::Virtual) => parking::offer_turn_now(),
        Some(Pace::Real | Pace::Recorded) => {
            Glance::new(WaitKind::Other, true).judge(None, &mut |_| {});
        }
        Some(Pace::Off) | None => {}
    }
}

/// One call that looks before it waits.
pub struct Glance {
    kind: WaitKind,
    /// It never waits.
    only_looks: bool,
    has_yielded: bool,
    has_waited: bool,
}

/// What becomes of a call before it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Look(Only),
    /// Others have had their turn, so what it waits for may be gone again.
    Judge,
    /// It is to wait.
    Wait,
    /// It did not wait when recorded. What it waits for is about to come, and it keeps its turn until then.
    Keep,
}

impl Glance {
    pub fn new(kind: WaitKind, only_looks: bool) -> Glance {
        Glance { kind, only_looks, has_yielded: false, has_waited: false }
    }

    /// The call has waited: what it finds now is what it waited for.
    pub fn waited(&mut self) {
        self.has_waited = true;
    }

    /// The call, which may wait for `ns`, is about to look at the descriptors that `fill` lists. Keeps `errno`.
    pub fn judge(&mut self, ns: Option<i64>, fill: &mut impl FnMut(&mut Region<pollfd>)) -> Verdict {
        let errno = kernel::errno();
        let verdict = match pace() {
            Some(Pace::Real) => self.record(ns, fill),
            Some(_) => self.replay(ns, fill),
            None => None,
        };
        kernel::set_errno(errno);
        verdict.unwrap_or(Verdict::Look(None))
    }

    /// The time of the call is up. What it looks at, for the last time.
    pub fn timed_out(&mut self, fill: &mut impl FnMut(&mut Region<pollfd>)) -> Only {
        if pace()? == Pace::Real {
            let found = ready(&mut listed(fill))?;
            if found != 0 {
                note_found(found);
            }
            return Some(found);
        }
        let place = place()?;
        let found = parking::with_order(&place, Order::found).flatten()?;
        settle(&place, found, fill)
    }

    fn record(&mut self, ns: Option<i64>, fill: &mut impl FnMut(&mut Region<pollfd>)) -> Option<Verdict> {
        let place = place()?;
        let mut fds = listed(fill);
        let found = ready(&mut fds);
        if fds.as_slice().iter().all(|fd| fd.revents == 0) && !self.only_looks {
            return Some(Verdict::Wait);
        }
        if !self.has_waited {
            // Once in a call: two that never take what is there would go on for ever.
            if !self.has_yielded && place.page.lock().scheduler().is_awaited(place.slot) {
                self.has_yielded = true;
                return step_aside(self.kind, ns, place);
            }
            let (mut call, _) = followed()?;
            let (sandbox, thread) = call.parts();
            sandbox.count_look(thread);
        }
        let only = found.filter(|_| self.only_looks || fds.as_slice().len() > 1);
        only.filter(|&found| found != 0).into_iter().for_each(note_found);
        Some(Verdict::Look(only))
    }

    fn replay(&mut self, ns: Option<i64>, fill: &mut impl FnMut(&mut Region<pollfd>)) -> Option<Verdict> {
        let place = place()?;
        let found = || parking::with_order(&place, Order::found).flatten();
        if self.has_waited {
            let found = found().filter(|&found| found != 0)?;
            return Some(Verdict::Look(settle(&place, found, fill)));
        }
        let asked = parking::ask(&mut followed()?.0, self.kind, ns)?;
        match parking::with_order(&place, |order, pedigree| order.glance(pedigree, &asked)).flatten()? {
            Glanced::Waited => Some(Verdict::Wait),
            Glanced::Yielded => step_aside(self.kind, ns, place),
            Glanced::Looked => Some(match found() {
                Some(0) if !self.only_looks => Verdict::Keep,
                found => Verdict::Look(found.and_then(|found| settle(&place, found, fill))),
            }),
        }
    }
}

/// Lets others have their turn.
fn step_aside(kind: WaitKind, ns: Option<i64>, place: Place) -> Option<Verdict> {
    let (mut call, _) = followed()?;
    let asked = parking::ask(&mut call, kind, ns);
    parking::step_aside(call, place, asked);
    Some(Verdict::Judge)
}

fn note_found(found: u64) {
    let Some((mut call, _)) = followed() else { return };
    let (sandbox, thread) = call.parts();
    sandbox.record_found(thread, found);
}

/// The calling thread, if it runs interpreted code in a sandbox that is recorded or replayed. One that keeps the interpreter's
/// lock lets nobody run, and is left alone.
pub fn followed() -> Option<(Call, Pace)> {
    let mut call = Call::enter()?;
    let pace = call.sandbox.pace();
    let is_followed = matches!(pace, Pace::Real | Pace::Recorded);
    (is_followed && call.thread().seat.is_host && !Registered.is_running()).then_some((call, pace))
}

/// The pace of its sandbox.
pub fn pace() -> Option<Pace> {
    followed().map(|(_, pace)| pace)
}

/// Its place in the table of waits.
pub fn place() -> Option<Place> {
    parking::place_of(followed()?.0.thread())
}

fn listed(fill: &mut impl FnMut(&mut Region<pollfd>)) -> Region<pollfd> {
    let mut fds = Region::new();
    fill(&mut fds);
    fds
}

/// Which of them are ready, by their places. None: there are too many to tell.
fn ready(fds: &mut Region<pollfd>) -> Option<u64> {
    let fds = fds.as_mut_slice();
    parking::is_any_ready(fds);
    if fds.len() > LIST_MAX {
        return None;
    }
    let places = fds.iter().enumerate().filter(|(_, fd)| fd.revents != 0);
    Some(places.fold(0, |found, (place, _)| found | 1 << place))
}

/// Waits until those are ready that were when recorded, and looks at those alone. Where they do not come the journal is not asked
/// again.
fn settle(place: &Place, found: u64, fill: &mut impl FnMut(&mut Region<pollfd>)) -> Only {
    let end_ns = real_ns().saturating_add(PATIENCE_NS);
    loop {
        let mut fds = listed(fill);
        let missing = found & !ready(&mut fds)?;
        if missing == 0 {
            return Some(found);
        }
        if real_ns() > end_ns {
            parking::with_order(place, |order, _| order.give_up_found());
            return None;
        }
        // Those that are ready would end each wait at once.
        let is_missing = |place: usize| place < LIST_MAX && missing >> place & 1 != 0;
        fds.as_mut_slice()
            .iter_mut()
            .enumerate()
            .filter(|(place, _)| !is_missing(*place))
            .for_each(|(_, fd)| fd.fd = -1);
        parking::wait_for_ready(fds.as_mut_slice(), PERIOD_NS);
    }
}
