//! Who may reach what: the sandbox of the moment is asked first, then the floor under it.
//!
//! The order decides whose refusal a program sees where both refuse: the nearer one, which a test may have asked for. The floor is
//! asked whatever a thread's guard says: it holds also where a sandbox is suspended, and where everything else is real.

use crate::floor;
use crate::guard::{self, Call};
use crate::host::Registered;
use core::net::IpAddr;
use hermetic_abi::Finding;
use hermetic_policy::Target;

/// Whether anybody restricts the network, as this thread sees it. Cheap.
pub fn is_guarded() -> bool {
    if floor::is_active() {
        return true;
    }
    guard::active().is_some() && Call::enter_any().is_some_and(|call| call.sandbox.is_network_guarded())
}

/// Judges an attempt. A sandbox's refusal is recorded; a floor's (its kind tells) is left to the caller to note.
pub fn judge(what: &str, target: &Target<'_>) -> Option<Finding> {
    if let Some(mut call) = Call::enter_any() {
        let (sandbox, thread) = call.parts();
        if let Some(found) = sandbox.judge(thread, &Registered, what, target) {
            return Some(found);
        }
    }
    floor::judge(what, target)
}

/// Judges an attempt for the libc ring, and records whatever refuses it.
pub fn is_refused(what: &str, target: &Target<'_>) -> bool {
    match judge(what, target) {
        Some(found) => {
            floor::note_with_site(found);
            true
        }
        None => false,
    }
}

/// Whether a name that the interpreter looks up by itself, before it says what for, is refused. Nothing is recorded.
pub fn is_hidden_look_up_refused(target: &Target<'_>) -> bool {
    let by_sandbox = Call::enter_any().is_some_and(|call| !call.sandbox.is_allowed(target));
    by_sandbox || floor::is_hidden_look_up_refused(target)
}

/// An allowed name led to this address.
pub fn remember(name: &[u8], address: IpAddr) {
    if let Some(call) = Call::enter_any() {
        call.sandbox.remember(name, address);
    }
    floor::remember(name, address);
}
