//! SHA-256, as seeds and keys need it: a few short pieces, hashed once at entry.
//!
//! Written out here because the crate below everything else should depend on nothing. It is checked against an independent
//! implementation in `tests/`. It makes no claim of constant time: nothing secret passes through it.

const ROUNDS: usize = 64;
const BLOCK_LEN: usize = 64;

/// Hashes the concatenation of `parts`.
///
/// ```
/// use hermetic_model::digest::sha256;
/// assert_eq!(sha256(&[b"ab", b"c"]), sha256(&[b"abc"]));
/// assert_eq!(sha256(&[b"abc"])[..4], [0xba, 0x78, 0x16, 0xbf]);
/// ```
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Hasher { state: INITIAL, block: [0; BLOCK_LEN], used: 0, total_len: 0 };
    for part in parts {
        hasher.update(part);
    }
    hasher.finish()
}

struct Hasher {
    state: [u32; 8],
    block: [u8; BLOCK_LEN],
    used: usize,
    total_len: u64,
}

impl Hasher {
    fn update(&mut self, mut bytes: &[u8]) {
        self.total_len = self.total_len.wrapping_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let take = bytes.len().min(BLOCK_LEN - self.used);
            self.block[self.used..self.used + take].copy_from_slice(&bytes[..take]);
            self.used += take;
            bytes = &bytes[take..];
            if self.used == BLOCK_LEN {
                compress(&mut self.state, &self.block);
                self.used = 0;
            }
        }
    }

    fn finish(mut self) -> [u8; 32] {
        let bit_len = self.total_len.wrapping_mul(8);
        self.update(&[0x80]);
        while self.used != BLOCK_LEN - 8 {
            self.update(&[0]);
        }
        self.update(&bit_len.to_be_bytes());
        let mut out = [0; 32];
        for (chunk, word) in out.chunks_exact_mut(4).zip(self.state) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        out
    }
}

fn compress(state: &mut [u32; 8], block: &[u8; BLOCK_LEN]) {
    let mut schedule = [0u32; ROUNDS];
    for (word, chunk) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    }
    for at in 16..ROUNDS {
        let (early, late) = (schedule[at - 15], schedule[at - 2]);
        let small0 = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let small1 = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        schedule[at] = schedule[at - 16].wrapping_add(small0).wrapping_add(schedule[at - 7]).wrapping_add(small1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in schedule.into_iter().zip(CONSTANTS) {
        let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(big1).wrapping_add(choice).wrapping_add(constant).wrapping_add(word);
        let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let second = big0.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(add);
    }
}

const fn is_prime(number: u64) -> bool {
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 1;
    }
    true
}

/// The first 32 bits of the fractional part of the `degree`-th root of `number`, found by bisection on integers.
const fn root_fraction(number: u64, degree: u32) -> u32 {
    // The root, scaled by 2^32, is the largest r with r^degree <= number * 2^(32 * degree).
    let target = (number as u128) << (32 * degree);
    let mut low: u128 = 0;
    let mut high: u128 = 1 << 37;
    while high - low > 1 {
        let middle = (low + high) / 2;
        let power = if degree == 2 { middle * middle } else { middle * middle * middle };
        if power <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

/// FIPS 180-4 defines its constants as roots of the first primes, so they are derived rather than copied.
const fn roots<const COUNT: usize>(degree: u32) -> [u32; COUNT] {
    let mut out = [0; COUNT];
    let mut number = 2;
    let mut at = 0;
    while at < COUNT {
        if is_prime(number) {
            out[at] = root_fraction(number, degree);
            at += 1;
        }
        number += 1;
    }
    out
}

const INITIAL: [u32; 8] = roots(2);
const CONSTANTS: [u32; ROUNDS] = roots(3);
