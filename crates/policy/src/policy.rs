//! The policy: a stance on loopback and unix sockets, a list of entries, and what their names resolved to.

use crate::entry::{Entry, Scope};
use crate::error::{EntryError, Reason};
use crate::host::{self, Host};
use crate::limits::ENTRIES_MAX;
use crate::memory::Memory;
use crate::stance::Stance;
use crate::target::{until_nul, By, Target, Verdict, AF_PACKET};
use alloc::vec::Vec;
use core::net::IpAddr;

/// What a sandbox may reach.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    allows_loopback: bool,
    allows_unix: bool,
    entries: Vec<Entry>,
    memory: Memory,
}

impl Policy {
    /// A policy without entries. Does not allocate.
    pub const fn new(allow_loopback: bool, allow_unix: bool) -> Policy {
        Policy { allows_loopback: allow_loopback, allows_unix: allow_unix, entries: Vec::new(), memory: Memory::new() }
    }

    /// Adds an entry; one that is there already changes nothing. Allocates, so it is not for hooks.
    ///
    /// ```
    /// let mut policy = hermetic_policy::Policy::new(true, true);
    /// policy.add("*.example.com:https").unwrap();
    /// let error = policy.add("https://example.com/v1").unwrap_err();
    /// assert!(error.to_string().contains("example.com:443"));
    /// ```
    pub fn add(&mut self, entry: &str) -> Result<(), EntryError> {
        let parsed: Entry = entry.parse()?;
        if self.entries.contains(&parsed) {
            return Ok(());
        }
        if self.entries.len() == ENTRIES_MAX {
            return Err(EntryError::new(entry, Reason::TooMany));
        }
        if matches!(parsed.scope, Scope::Name(_) | Scope::Subdomains(_) | Scope::Machine) {
            self.memory.reserve();
        }
        self.entries.push(parsed);
        Ok(())
    }

    /// The entries in the order in which they were added.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn allows_loopback(&self) -> bool {
        self.allows_loopback
    }

    pub fn allows_unix(&self) -> bool {
        self.allows_unix
    }

    /// May the program reach that target? Does not allocate.
    pub fn decide(&self, target: &Target<'_>) -> Verdict {
        match *target {
            Target::Name { host, port } => self.decide_host(&host::read(host), port),
            Target::Address { ip, port } => self.decide_host(&Host::Address(host::canonical(ip)), port),
            Target::Unix { path } => self.decide_unix(path),
            Target::Other { family: AF_PACKET } => Verdict::Refused,
            Target::Other { .. } => Verdict::Allowed(By::Family),
        }
    }

    /// Notes that a look-up of `name` gave `ip`. Does nothing unless an entry allows the name; does not allocate.
    ///
    /// ```
    /// use hermetic_policy::{Policy, Target};
    /// let mut policy = Policy::new(false, false);
    /// policy.add("api.example.com:443").unwrap();
    /// let ip = "192.0.2.7".parse().unwrap();
    /// policy.remember(b"api.example.com", ip);
    /// assert!(policy.decide(&Target::Address { ip, port: Some(443) }).is_allowed());
    /// assert!(!policy.decide(&Target::Address { ip, port: Some(80) }).is_allowed());
    /// ```
    pub fn remember(&mut self, name: &[u8], ip: IpAddr) {
        let Host::Name(name) = host::read(name) else {
            return;
        };
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.covers_host(&Host::Name(name), None) {
                self.memory.put(host::canonical(ip), index);
            }
        }
    }

    /// The policy in words, for messages.
    pub fn stance(&self) -> Stance<'_> {
        Stance::of(self)
    }

    fn decide_host(&self, asked: &Host<'_>, port: Option<u16>) -> Verdict {
        if self.allows_loopback && is_this_machine(asked) {
            return Verdict::Allowed(By::Loopback);
        }
        if let Some(index) = self.entries.iter().position(|entry| entry.covers_host(asked, port)) {
            return Verdict::Allowed(By::Entry(index));
        }
        if let Host::Address(address) = asked {
            let mut known = self.memory.entries_for(*address);
            if let Some(index) = known.find(|index| self.entries[*index].covers_port(port)) {
                return Verdict::Allowed(By::Remembered(index));
            }
        }
        Verdict::Refused
    }

    fn decide_unix(&self, path: &[u8]) -> Verdict {
        if self.allows_unix {
            return Verdict::Allowed(By::Unix);
        }
        let asked = if path.first() == Some(&0) { path } else { until_nul(path) };
        match self.entries.iter().position(|entry| entry.covers_unix(asked)) {
            Some(index) => Verdict::Allowed(By::Entry(index)),
            None => Verdict::Refused,
        }
    }
}

fn is_this_machine(asked: &Host<'_>) -> bool {
    match asked {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => host::is_machine_name(name),
    }
}
