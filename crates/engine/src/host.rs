//! What the engine asks of the language that runs above it.

use hermetic_abi::{Place, PlaceText};

/// The calling thread, as its host language sees it. The hook library implements this over the ABI's `Host`.
pub trait Host {
    /// The calling thread runs host code now, and the other questions make sense.
    fn is_running(&self) -> bool;
    /// It is one of the host's threads: it may run host code again.
    fn is_known(&self) -> bool;
    /// The place it executes.
    fn place(&self) -> Option<Place>;
    /// Both at once: whether it runs host code, and the place.
    fn look(&self) -> (bool, Option<Place>) {
        (self.is_running(), self.place())
    }
    /// Describes a place; may allocate.
    fn describe(&self, place: Place, out: &mut PlaceText) -> bool;
    /// It is inside the import machinery.
    fn is_importing(&self) -> bool;
    /// Makes it raise an error for a finding of this kind.
    fn interrupt(&self, kind: u32);
}

/// No host: a program without an interpreter, or a test.
pub struct NoHost;

impl Host for NoHost {
    fn is_running(&self) -> bool {
        false
    }

    fn is_known(&self) -> bool {
        false
    }

    fn place(&self) -> Option<Place> {
        None
    }

    fn describe(&self, _place: Place, _out: &mut PlaceText) -> bool {
        false
    }

    fn is_importing(&self) -> bool {
        false
    }

    fn interrupt(&self, _kind: u32) {}
}
