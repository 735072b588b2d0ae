//! Call sites: places of the host language, described once and numbered.

use crate::host::Host;
use hermetic_abi::{Place, PlaceText};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of the place "somewhere without a host": native code, or a thread that does not run host code now.
pub const NATIVE: u32 = 0;

/// What a place is to its journal.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub id: u32,
    /// It was first seen under an import, so whether it is under one must be asked each time.
    pub may_import: bool,
}

/// The sites of one journal.
#[derive(Default)]
pub struct Sites {
    known: HashMap<Place, Site, BuildHasherDefault<PlaceHasher>>,
    /// The last place asked for: loops ask for the same one.
    last: Option<(Place, Site)>,
}

impl Sites {
    /// The calling thread's site, and whether it is inside the import machinery. `number` turns a description into an id,
    /// and is called once per place.
    #[inline]
    pub fn current(&mut self, host: &dyn Host, number: impl FnOnce(&PlaceText) -> u32) -> (u32, bool) {
        // Not only while the host runs: CPython gives its lock away around most system calls, and still knows the place.
        let Some(place) = host.place() else { return (NATIVE, false) };
        let site = match self.last {
            Some((last, site)) if last == place => site,
            _ => self.look_up(place, host, number),
        };
        (site.id, site.may_import && host.is_importing())
    }

    fn look_up(&mut self, place: Place, host: &dyn Host, number: impl FnOnce(&PlaceText) -> u32) -> Site {
        let site = *self.known.entry(place).or_insert_with(|| {
            let mut text = PlaceText::BLANK;
            if !host.describe(place, &mut text) {
                return Site { id: NATIVE, may_import: false };
            }
            Site { id: number(&text), may_import: text.importing != 0 }
        });
        self.last = Some((place, site));
        site
    }
}

/// Multiplies and folds: places are two addresses, already well spread, and nobody attacks this table.
#[derive(Default)]
pub struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        // The odd constant is 2^64 divided by the golden ratio.
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}
