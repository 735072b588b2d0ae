//! How a Mersenne Twister is seeded, exactly as CPython and NumPy do it: both keep their streams for a seed the same for ever.
//!
//! Written out here because a test's generators are seeded each time a sandbox is entered, and half of what the libraries' own
//! functions take is the way there. They are believed only after a comparison with those (`crates/py`).

/// Number of words of the state, beside the index of the next one.
pub const WORDS: usize = 624;

/// What seeding by several words begins with, whatever they are.
const BASE: [u32; WORDS] = by_number(19_650_218);

/// The state for a seed of 32 bits: `init_genrand` of the reference implementation.
pub const fn by_number(seed: u32) -> [u32; WORDS] {
    let mut state = [seed; WORDS];
    let mut at = 1;
    while at < WORDS {
        state[at] = mixed(state[at - 1], 1_812_433_253).wrapping_add(at as u32);
        at += 1;
    }
    state
}

/// The state for a seed of several words, the lowest first: `init_by_array`.
pub fn by_words(seed: &[u32]) -> [u32; WORDS] {
    let mut state = BASE;
    // The word before the one that is made next. The first word is never made: where the others go around, the last one counts
    // for it.
    let mut last = state[0];
    let mut at = 1;
    for (number, word) in seed.iter().enumerate().cycle().take(WORDS.max(seed.len())) {
        last = (state[at] ^ mixed(last, 1_664_525)).wrapping_add(*word).wrapping_add(number as u32);
        state[at] = last;
        at = after(at);
    }
    for _ in 1..WORDS {
        last = (state[at] ^ mixed(last, 1_566_083_941)).wrapping_sub(at as u32);
        state[at] = last;
        at = after(at);
    }
    state[0] = 0x8000_0000;
    state
}

fn after(at: usize) -> usize {
    if at == WORDS - 1 {
        1
    } else {
        at + 1
    }
}

const fn mixed(word: u32, factor: u32) -> u32 {
    (word ^ (word >> 30)).wrapping_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeding_is_that_of_the_reference_implementation() {
        // The states behind the first numbers that its authors publish for this seed.
        let state = by_words(&[0x123, 0x234, 0x345, 0x456]);
        let next = (state[0] & 0x8000_0000) | (state[1] & 0x7fff_ffff);
        let twisted = state[397] ^ (next >> 1) ^ if next & 1 == 1 { 0x9908_b0df } else { 0 };
        assert_eq!(tempered(twisted), 1_067_595_299);
    }

    fn tempered(mut word: u32) -> u32 {
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }
}
