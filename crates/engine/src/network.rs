//! Refusals: what the policy does not allow is written down, told to the caller, and remembered for the end of the test.

use crate::finding::blank;
use crate::host::Host;
use crate::sandbox::{lock, write_site, Sandbox, Tape};
use crate::thread::Thread;
use core::net::IpAddr;
use hermetic_abi::{finding, flag, Finding};
use hermetic_journal::Event;
use hermetic_policy::{Policy, Target};
use std::fmt::Write;

impl Sandbox {
    /// Whether there is a policy to ask at all.
    #[inline]
    pub fn is_network_guarded(&self) -> bool {
        self.has(flag::NETWORK)
    }

    /// Whether threads that are no part of the sandbox have the network as it is.
    pub fn is_for_own_threads(&self) -> bool {
        self.has(flag::OWN_THREADS)
    }

    /// Whether the target is allowed; nothing is recorded.
    pub fn is_allowed(&self, target: &Target<'_>) -> bool {
        !self.is_network_guarded() || lock(&self.policy).decide(target).is_allowed()
    }

    /// Judges an attempt. A refusal is recorded and comes back as the finding. `what` is the verb of the message, for
    /// example "connect to".
    pub fn judge(&self, thread: &mut Thread, host: &dyn Host, what: &str, target: &Target<'_>) -> Option<Finding> {
        if !self.is_network_guarded() {
            return None;
        }
        let mut found = blank(finding::REFUSAL, self.has(flag::NETWORK_STRICT));
        {
            let policy = lock(&self.policy);
            if policy.decide(target).is_allowed() {
                return None;
            }
            describe(&mut found, what, target, &policy);
        }
        write_site(host, &mut found.site);
        self.commit(thread, host);
        let number = self.level(thread).number;
        if let Tape::Recorder(recorder) = &mut *lock(&self.tape) {
            let (site, _) = recorder.site(host, false);
            let subject = found.subject.as_str();
            recorder.append(&Event::Refusal { thread: number, site, subject, port: found.port });
        }
        lock(&self.findings).add(&found);
        Some(found)
    }

    /// An allowed name led to this address, so the address is allowed where the name is.
    pub fn remember(&self, name: &[u8], address: IpAddr) {
        if self.is_network_guarded() {
            lock(&self.policy).remember(name, address);
        }
    }

    /// Adds an entry to the policy of a running sandbox. The error names the entry and what is accepted.
    pub fn allow(&self, entry: &str) -> Result<(), String> {
        lock(&self.policy).add(entry).map_err(|error| error.to_string())
    }
}

fn describe(found: &mut Finding, what: &str, target: &Target<'_>, policy: &Policy) {
    let (subject, port) = match *target {
        Target::Name { host, port } => (Target::Name { host, port: None }, port),
        Target::Address { ip, port } => (Target::Address { ip, port: None }, port),
        other => (other, None),
    };
    found.port = port.map_or(-1, i32::from);
    let _ = write!(found.subject, "{subject}");
    let _ = write!(found.message, "hermetic refused to {what} {target}: the sandbox {}", policy.stance());
    let _ = match target {
        Target::Unix { .. } => write!(found.message, "; allow_unix=True or network=[\"{target}\"] would allow it"),
        Target::Other { .. } => Ok(()),
        _ => write!(found.message, "; network=[\"{target}\"] or sb.allow_network(\"{target}\") would allow it"),
    };
}
