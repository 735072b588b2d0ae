//! What the engine keeps of one thread.
//!
//! A thread takes part in a sandbox from the first call that it makes inside. Sandboxes can lie on top of each other (the
//! plugin's, a wide fixture's, the user's), and coming back to the lower one must find a thread's streams and ticks where
//! they were left, so there is one record per level.

use crate::replayer::GUESTS;
use crate::steps::Pace;
use crate::tentative::Tentative;
use hermetic_abi::{Finding, Text};
use hermetic_model::stream::{Key, Pedigree, Purpose, Stream};

/// How many sandboxes can lie on top of each other. Real use needs three; the rest is for pytest inside pytest.
pub const LEVELS_MAX: usize = 8;

/// Who a thread is to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// It existed before the sandbox, or its maker is unknown: its clocks, waits and entropy stay real.
    #[default]
    Foreign = 0,
    /// The thread that entered, or one that such a thread started.
    Controlled = 1,
}

/// A thread's record.
pub struct Thread {
    pub class: Class,
    pub identity: Identity,
    pub(crate) levels: [Level; LEVELS_MAX],
    /// Text of the finding that interrupted this thread last.
    pub interrupt: Text,
    /// A name whose hidden look-up was answered with a placeholder; the connection that follows is refused by name.
    pub pending_name: Text,
    /// Its place in the table of waits.
    pub seat: Seat,
    /// What there is to tell of a tentative reading that the journal has no answer for.
    pub(crate) missed: Option<Finding>,
}

/// From its maker: who a thread is in sandboxes that it did not enter itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub pedigree: Pedigree,
    /// Its name in any other sandbox than its own. The first child of a test must not be taken for the first of a fixture that
    /// serves the test.
    pub guest: Pedigree,
    /// The sandbox that it was made in.
    pub home: u64,
}

impl Identity {
    /// Of a thread that no sandbox has made.
    pub const NONE: Identity = Identity { pedigree: Pedigree::ROOT, guest: Pedigree::ROOT, home: 0 };

    /// Of one that is made in the sandbox `home`, whose seed has that key.
    pub fn new(pedigree: Pedigree, home: u64, key: &Key) -> Identity {
        Identity { pedigree, guest: pedigree.guest(key), home }
    }

    /// Its name in the sandbox of that generation.
    pub fn pedigree_in(&self, generation: u64) -> Pedigree {
        if self.home == generation {
            self.pedigree
        } else {
            self.guest
        }
    }
}

/// A thread's place in a table of waits: good for as long as the epoch lasts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seat {
    pub epoch: u64,
    pub slot: u32,
    /// It runs interpreted code, so it needs the baton.
    pub is_host: bool,
    /// The interpreter started it, and it ends when it has no interpreted code left to run.
    pub is_made_by_host: bool,
}

/// A thread inside the sandbox of one level.
pub struct Level {
    /// The sandbox that the rest belongs to.
    pub(crate) generation: u64,
    pub(crate) pedigree: Pedigree,
    /// It comes from a wider sandbox, or a thread that does has started it; see [`crate::order`].
    pub(crate) is_guest: bool,
    /// Number in the journal: 0 for the thread that entered, then by first appearance.
    pub(crate) number: u32,
    /// Threads started so far.
    pub(crate) children: u64,
    /// Readings of a clock that ticks.
    pub(crate) ticks: u64,
    /// What was read last, while it may still turn out to be no reading of the program.
    pub(crate) tentative: Option<Tentative>,
    /// Readings that ticked before the thread came to what it does by chance now.
    ticks_before_chance: Option<u64>,
    /// What deadlines count from.
    pub(crate) basis: Option<Basis>,
    /// Calls that might have waited and did not, as far as no journal has them yet.
    pub(crate) looks: u32,
    /// Readings since time last moved, as this thread saw it.
    pub(crate) still: u64,
    pub(crate) moves_seen: u64,
    /// The streams are this sandbox's, and not a former one's.
    pub(crate) is_keyed: bool,
    application: Stream,
    openssl: Stream,
    order: Stream,
    schedule: Stream,
    pub(crate) pace: Pace,
}

/// What the monotonic clock showed to a thread last, and how much time had passed then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis {
    pub value_ns: i64,
    pub elapsed_ns: i64,
}

impl Level {
    const EMPTY: Level = Level {
        generation: 0,
        pedigree: Pedigree::ROOT,
        is_guest: false,
        number: 0,
        children: 0,
        ticks: 0,
        tentative: None,
        ticks_before_chance: None,
        basis: None,
        looks: 0,
        still: 0,
        moves_seen: 0,
        is_keyed: false,
        application: Stream::EMPTY,
        openssl: Stream::EMPTY,
        order: Stream::EMPTY,
        schedule: Stream::EMPTY,
        pace: Pace::UNKNOWN,
    };

    /// The streams are left as they are: they are keyed when the first of them is drawn from.
    pub(crate) fn begin(&mut self, generation: u64, pedigree: Pedigree, number: u32, ticks: u64) {
        self.generation = generation;
        self.pedigree = pedigree;
        self.is_guest = false;
        self.number = number;
        self.children = 0;
        self.ticks = ticks;
        self.tentative = None;
        self.ticks_before_chance = None;
        self.basis = None;
        self.looks = 0;
        (self.still, self.moves_seen) = (0, 0);
        self.is_keyed = false;
        self.pace = Pace::UNKNOWN;
    }

    /// Its number in the journal, and whether it does by chance what it does.
    pub(crate) fn voice(&self) -> (u32, bool) {
        (self.number, self.is_by_chance())
    }

    /// Whose answers it gets from a journal, and whether it is no difference if there are none.
    pub(crate) fn replayed(&self) -> (Pedigree, bool) {
        if self.is_guest {
            (GUESTS, true)
        } else {
            (self.pedigree, self.is_by_chance())
        }
    }

    /// Whether the thread does what it does by chance: when it comes to that says nothing about the program.
    pub(crate) fn is_by_chance(&self) -> bool {
        self.ticks_before_chance.is_some()
    }

    /// What the thread does from here on it does by chance.
    pub(crate) fn begin_chance(&mut self) {
        self.ticks_before_chance = Some(self.ticks);
    }

    /// That is over, and nothing has ticked.
    pub(crate) fn end_chance(&mut self) {
        if let Some(ticks) = self.ticks_before_chance.take() {
            self.ticks = ticks;
        }
    }

    pub(crate) fn key_streams(&mut self, key: &Key) {
        self.application = Stream::new(key, self.pedigree, Purpose::Application);
        self.openssl = Stream::new(key, self.pedigree, Purpose::Openssl);
        self.order = Stream::new(key, self.pedigree, Purpose::Order);
        self.schedule = Stream::new(key, self.pedigree, Purpose::Schedule);
        self.is_keyed = true;
    }

    pub(crate) fn stream(&mut self, purpose: Purpose) -> &mut Stream {
        match purpose {
            Purpose::Openssl => &mut self.openssl,
            Purpose::Order => &mut self.order,
            Purpose::Schedule => &mut self.schedule,
            _ => &mut self.application,
        }
    }
}

impl Thread {
    pub const fn new(class: Class) -> Thread {
        Thread {
            class,
            identity: Identity::NONE,
            levels: [const { Level::EMPTY }; LEVELS_MAX],
            interrupt: Text::new(),
            pending_name: Text::new(),
            seat: Seat { epoch: 0, slot: 0, is_host: false, is_made_by_host: false },
            missed: None,
        }
    }

    /// Where it sits, and who it is: what outlives the record.
    pub fn place(&self) -> (Seat, Identity) {
        (self.seat, self.identity)
    }

    /// It has left the lowest sandbox: a thread that entered by itself is real from here on, and no part of a sandbox that
    /// another thread enters. One that a sandbox has started takes part in later ones too.
    pub fn retire(&mut self) {
        if self.identity == Identity::NONE {
            self.class = Class::Foreign;
        }
    }

    pub fn is_controlled(&self) -> bool {
        self.class == Class::Controlled
    }
}
