//! The floor under all sandboxes: a network policy for the whole process, and what it found.
//!
//! It knows no threads and no phases: it holds from its first moment to its last, whatever sandbox is entered, suspended or left
//! above it. Several can lie on each other (pytest inside pytest); a target must be allowed by each, so an inner one only narrows.

use crate::finding::{blank, FINDINGS_MAX};
use crate::host::Host;
use crate::sandbox::lock;
use core::net::IpAddr;
use hermetic_abi::{finding, Finding};
use hermetic_policy::{Policy, Target};
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Floors that can lie on each other.
pub const FLOORS_MAX: usize = 8;

/// What a floor is laid with.
#[derive(Clone, Copy, Debug)]
pub struct FloorSettings<'a> {
    pub allows_loopback: bool,
    pub allows_unix: bool,
    /// Policy entries, one a line.
    pub allow: &'a str,
    /// Who refuses, for messages.
    pub owner: &'a str,
    /// How a message ends, for hosts and for unix sockets.
    pub hint_host: &'a str,
    pub hint_unix: &'a str,
    /// It is the floor of the program that started this one: what it refuses is told there.
    pub is_inherited: bool,
}

struct Level {
    id: i64,
    policy: Policy,
    owner: String,
    hint_host: String,
    hint_unix: String,
    is_inherited: bool,
}

struct State {
    last_id: i64,
    levels: Vec<Level>,
    findings: Vec<Finding>,
}

/// All floors of a process.
pub struct Floor {
    state: Mutex<State>,
    count: AtomicU32,
    pending: AtomicU32,
}

impl Default for Floor {
    fn default() -> Floor {
        Floor::new()
    }
}

impl Floor {
    pub const fn new() -> Floor {
        let state = State { last_id: 0, levels: Vec::new(), findings: Vec::new() };
        Floor { state: Mutex::new(state), count: AtomicU32::new(0), pending: AtomicU32::new(0) }
    }

    /// Lays a floor; returns its id. The error is for people.
    pub fn enter(&self, settings: &FloorSettings<'_>) -> Result<i64, String> {
        let mut policy = Policy::new(settings.allows_loopback, settings.allows_unix);
        for entry in settings.allow.lines().filter(|entry| !entry.is_empty()) {
            policy.add(entry).map_err(|error| error.to_string())?;
        }
        let mut state = lock(&self.state);
        if state.levels.len() == FLOORS_MAX {
            return Err(format!("{FLOORS_MAX} floors lie on top of each other already"));
        }
        state.last_id += 1;
        let id = state.last_id;
        state.levels.push(Level {
            id,
            policy,
            owner: settings.owner.to_owned(),
            hint_host: settings.hint_host.to_owned(),
            hint_unix: settings.hint_unix.to_owned(),
            is_inherited: settings.is_inherited,
        });
        self.count.store(state.levels.len() as u32, Ordering::Release);
        Ok(id)
    }

    /// Takes a floor away. False: there is none of that id.
    pub fn leave(&self, id: i64) -> bool {
        let mut state = lock(&self.state);
        let before = state.levels.len();
        state.levels.retain(|level| level.id != id);
        self.count.store(state.levels.len() as u32, Ordering::Release);
        state.levels.len() < before
    }

    /// Adds an entry to every floor.
    pub fn allow(&self, entry: &str) -> Result<(), String> {
        let mut state = lock(&self.state);
        state.levels.iter_mut().try_for_each(|level| level.policy.add(entry)).map_err(|error| error.to_string())
    }

    #[inline]
    pub fn is_active(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// Judges an attempt. A refusal comes back as a finding without a call site; it is not recorded. The innermost floor that
    /// refuses speaks: it is the one of whoever runs the code.
    pub fn judge(&self, what: &str, target: &Target<'_>) -> Option<Finding> {
        if !self.is_active() {
            return None;
        }
        let state = lock(&self.state);
        let level = state.levels.iter().rev().find(|level| !level.policy.decide(target).is_allowed())?;
        Some(level.describe(what, target))
    }

    /// An allowed name led to this address.
    pub fn remember(&self, name: &[u8], address: IpAddr) {
        if self.is_active() {
            lock(&self.state).levels.iter_mut().for_each(|level| level.policy.remember(name, address));
        }
    }

    /// Records a finding, or counts it where an equal one waits.
    pub fn note(&self, new: &Finding) {
        let mut state = lock(&self.state);
        let same = |old: &&mut Finding| {
            (old.kind, old.port) == (new.kind, new.port)
                && old.subject.as_str() == new.subject.as_str()
                && old.site.as_str() == new.site.as_str()
        };
        if let Some(old) = state.findings.iter_mut().find(same) {
            old.count = old.count.saturating_add(new.count);
        } else if state.findings.len() < FINDINGS_MAX {
            state.findings.push(new.clone());
        }
        self.pending.store(state.findings.len() as u32, Ordering::Release);
    }

    #[inline]
    pub fn pending(&self) -> u32 {
        self.pending.load(Ordering::Acquire)
    }

    /// Takes the oldest finding.
    pub fn take(&self) -> Option<Finding> {
        let mut state = lock(&self.state);
        if state.findings.is_empty() {
            return None;
        }
        let first = state.findings.remove(0);
        self.pending.store(state.findings.len() as u32, Ordering::Release);
        Some(first)
    }

    /// Holds the lock, so that a fork does not copy it half-way.
    pub fn hold(&self) -> Held<'_> {
        Held(lock(&self.state))
    }
}

/// The lock of the floor.
#[allow(dead_code, reason = "held, not read")]
pub struct Held<'a>(MutexGuard<'a, State>);

/// Fills in the place that the calling thread executes.
pub fn write_site(host: &dyn Host, found: &mut Finding) {
    crate::sandbox::write_site(host, &mut found.site);
}

impl Level {
    fn describe(&self, what: &str, target: &Target<'_>) -> Finding {
        let mut found = blank(finding::FLOOR_NETWORK, true);
        let (subject, port) = match *target {
            Target::Name { host, port } => (Target::Name { host, port: None }, port),
            Target::Address { ip, port } => (Target::Address { ip, port: None }, port),
            other => (other, None),
        };
        found.port = port.map_or(-1, i32::from);
        found.is_inherited = u32::from(self.is_inherited);
        let _ = write!(found.subject, "{subject}");
        let (owner, stance) = (&self.owner, self.policy.stance());
        let _ = write!(found.message, "{owner} refused to {what} {target}: the floor {stance}");
        let _ = match target {
            Target::Unix { .. } => write!(found.message, "; {}", self.hint_unix),
            Target::Other { .. } => Ok(()),
            _ => write!(found.message, "; {}", self.hint_host),
        };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: FloorSettings<'_> = FloorSettings {
        allows_loopback: false,
        allows_unix: false,
        allow: "",
        owner: "the test",
        hint_host: "ask for a host",
        hint_unix: "ask for a path",
        is_inherited: false,
    };

    fn asks(port: u16) -> Target<'static> {
        Target::Name { host: b"db.example", port: Some(port) }
    }

    #[test]
    fn every_floor_must_allow() {
        let floor = Floor::new();
        assert!(floor.judge("connect to", &asks(1)).is_none(), "no floor refuses nothing");
        let outer = floor.enter(&FloorSettings { allow: "db.example:5432", ..DENY }).expect("laid");
        assert!(floor.judge("connect to", &asks(5432)).is_none());
        let inner = floor.enter(&FloorSettings { allow: "db.example:5432\nother.example", ..DENY }).expect("laid");
        let other = Target::Name { host: b"other.example", port: Some(1) };
        let found = floor.judge("connect to", &other).expect("the outer one does not allow it");
        assert!(found.message.as_str().contains("ask for a host") && found.port == 1);
        let neither = floor.judge("connect to", &asks(1)).expect("both refuse");
        assert_eq!(neither.is_inherited, 0, "the inner one speaks first");
        assert!(floor.leave(inner) && floor.leave(outer) && !floor.leave(outer));
        assert!(!floor.is_active());
    }

    #[test]
    fn names_lead_to_addresses() {
        let floor = Floor::new();
        floor.enter(&FloorSettings { allow: "db.example:5432", ..DENY }).expect("laid");
        let ip = "192.0.2.7".parse().expect("an address");
        let target = Target::Address { ip, port: Some(5432) };
        assert!(floor.judge("connect to", &target).is_some());
        floor.remember(b"db.example", ip);
        assert!(floor.judge("connect to", &target).is_none());
    }

    #[test]
    fn findings_are_counted_and_taken_in_order() {
        let floor = Floor::new();
        floor.enter(&DENY).expect("laid");
        for port in [1, 2, 1] {
            floor.note(&floor.judge("connect to", &asks(port)).expect("refused"));
        }
        assert_eq!(floor.pending(), 2);
        let ports: Vec<(i32, u32)> =
            std::iter::from_fn(|| floor.take()).map(|found| (found.port, found.count)).collect();
        assert_eq!((ports, floor.pending()), (vec![(1, 2), (2, 1)], 0));
    }
}
