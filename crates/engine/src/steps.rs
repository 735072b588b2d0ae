//! `schedule="seeded"`: after how many steps a thread offers its turn, where it would otherwise run until it waits.
//!
//! What a step is the host says; the numbers are drawn from the thread's own stream, so they do not depend on what others do.

use crate::sandbox::Sandbox;
use crate::thread::Thread;
use crate::waits;
use hermetic_abi::flag;
use hermetic_model::stream::{Purpose, Stream};

/// The pace of a thread: how often it offers its turn. Races that are a step wide are found by threads that offer it all the time,
/// others by threads that run far ahead, so each thread has a pace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Steps until the next offer.
    left: u64,
    /// The numbers of steps are below a power of two whose exponent is drawn each time, below this; 0 before the first step.
    exponents: u64,
    offers: u64,
}

/// The slowest pace draws up to 1024 steps.
const EXPONENTS_MAX: u64 = 11;
/// After so many offers steps count half, and so on: a loop of millions of steps must end too.
const OFFERS_PER_SLOWDOWN: u64 = 1024;

impl Pace {
    pub(crate) const UNKNOWN: Pace = Pace { left: 0, exponents: 0, offers: 0 };

    /// Counts a step: whether the thread offers its turn. `stream` gives the thread's stream where there is something to draw.
    #[inline]
    fn step<'s>(&mut self, stream: impl FnOnce() -> &'s mut Stream) -> bool {
        if self.left == 0 {
            self.draw(stream());
        }
        self.left -= 1;
        self.left == 0
    }

    fn draw(&mut self, stream: &mut Stream) {
        if self.exponents == 0 {
            // The root's first number is the seed of all choices; for the others it is nothing.
            stream.next_u64();
            self.exponents = 1 + stream.below(EXPONENTS_MAX);
        }
        let exponent = stream.below(self.exponents);
        let slowdown = (self.offers / OFFERS_PER_SLOWDOWN).min(32);
        self.left = (1 + stream.below(1 << exponent)) << slowdown;
        self.offers += 1;
    }
}

impl Sandbox {
    /// Whether what the thread does is no part of the program's course; see [`Sandbox::begin_chance`].
    pub fn is_by_chance(&self, thread: &mut Thread) -> bool {
        self.level(thread).is_by_chance()
    }

    /// Counts a step of the thread: whether it shall offer its turn now. A replay takes the steps of its recording.
    #[inline]
    pub fn step(&self, thread: &mut Thread) -> bool {
        if !self.has(flag::SCHEDULE_SEEDED) || self.pace() == waits::Pace::Off || self.is_by_chance(thread) {
            return false;
        }
        let mut pace = self.level(thread).pace;
        let is_over = pace.step(|| self.stream(thread, Purpose::Schedule));
        self.level(thread).pace = pace;
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_model::stream::{Key, Pedigree};

    fn offers(seed: &[u8], steps: usize) -> Vec<usize> {
        let mut stream = Stream::new(&Key::from_seed(seed), Pedigree::ROOT, Purpose::Schedule);
        let mut pace = Pace::UNKNOWN;
        (0..steps).filter(|_| pace.step(|| &mut stream)).collect()
    }

    #[test]
    fn offers_repeat_for_a_seed_and_differ_between_seeds() {
        assert_eq!(offers(b"1", 10_000), offers(b"1", 10_000));
        assert_ne!(offers(b"1", 10_000), offers(b"2", 10_000));
    }

    #[test]
    fn some_threads_offer_all_the_time_and_some_run_far_ahead() {
        let counts: Vec<usize> = (0..100u32).map(|seed| offers(seed.to_string().as_bytes(), 1000).len()).collect();
        assert!(counts.iter().filter(|&&count| count > 300).count() > 10, "{counts:?}");
        assert!(counts.iter().filter(|&&count| count < 30).count() > 10, "{counts:?}");
        assert!(counts.iter().all(|&count| count > 0));
    }

    #[test]
    fn a_long_run_slows_down() {
        for seed in 0..4u32 {
            let count = offers(seed.to_string().as_bytes(), 1_000_000).len() as u64;
            assert!(count < OFFERS_PER_SLOWDOWN * 12, "seed {seed}: {count}");
        }
    }
}
