//! A policy in words: "allows loopback, unix sockets, api.example.com:443".

use crate::limits::STANCE_ENTRIES_MAX;
use crate::policy::Policy;
use core::fmt;

/// Prints what a policy allows. Printing does not allocate, so a hook may write it into a fixed buffer.
///
/// ```
/// let mut policy = hermetic_policy::Policy::new(true, false);
/// policy.add("api.example.com:https").unwrap();
/// assert_eq!(policy.stance().to_string(), "allows loopback, api.example.com:443");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stance<'policy>(&'policy Policy);

impl Stance<'_> {
    pub(crate) fn of(policy: &Policy) -> Stance<'_> {
        Stance(policy)
    }
}

impl fmt::Display for Stance<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.0;
        let mut separator = "allows ";
        for (is_allowed, name) in [(policy.allows_loopback(), "loopback"), (policy.allows_unix(), "unix sockets")] {
            if is_allowed {
                write!(out, "{separator}{name}")?;
                separator = ", ";
            }
        }
        for entry in policy.entries().iter().take(STANCE_ENTRIES_MAX) {
            write!(out, "{separator}{entry}")?;
            separator = ", ";
        }
        match policy.entries().len().saturating_sub(STANCE_ENTRIES_MAX) {
            0 if separator == "allows " => out.write_str("allows nothing"),
            0 => Ok(()),
            more => write!(out, " and {more} more"),
        }
    }
}
