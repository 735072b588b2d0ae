//! Addresses that allowed names resolved to.
//!
//! A connection carries an address, not the name it came from, so a policy that allows a name has to remember where the
//! name led. Each address is kept with the entry that allowed its name, and the entry judges the port.

use crate::limits::REMEMBERED_MAX;
use alloc::vec::Vec;
use core::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remembered {
    address: IpAddr,
    entry: u16,
}

/// A bounded ring; the oldest gives way to the newest.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    ring: Vec<Remembered>,
    oldest: usize,
}

impl Memory {
    pub const fn new() -> Memory {
        Memory { ring: Vec::new(), oldest: 0 }
    }

    /// Makes room once and for all, so that [`Memory::put`] does not allocate afterwards.
    pub fn reserve(&mut self) {
        if self.ring.capacity() < REMEMBERED_MAX {
            self.ring.reserve_exact(REMEMBERED_MAX - self.ring.len());
        }
    }

    pub fn put(&mut self, address: IpAddr, entry: usize) {
        let Ok(entry) = u16::try_from(entry) else {
            return;
        };
        let new = Remembered { address, entry };
        if self.ring.contains(&new) {
            return;
        }
        if self.ring.len() < REMEMBERED_MAX {
            self.ring.push(new);
        } else {
            self.ring[self.oldest] = new;
            self.oldest = (self.oldest + 1) % REMEMBERED_MAX;
        }
    }

    /// The entries whose names led to that address, oldest first.
    pub fn entries_for(&self, address: IpAddr) -> impl Iterator<Item = usize> + '_ {
        self.ring.iter().filter(move |known| known.address == address).map(|known| usize::from(known.entry))
    }
}
