//! A quick checksum of file contents: it finds damage, not malice.

const PRIMES: [u64; 4] = [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0x85eb_ca77_c2b2_ae63];

/// 64 bits over all bytes and their number. Four lanes keep a processor's multipliers busy; a file system in memory is slower
/// than this.
///
/// ```
/// use hermetic_pg::checksum;
/// assert_ne!(checksum(b"one"), checksum(b"two"));
/// ```
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut lanes = PRIMES;
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = mix(*lane, word_of(word));
        }
    }
    for (lane, word) in lanes.iter_mut().zip(blocks.remainder().chunks(8)) {
        *lane = mix(*lane, word_of(word));
    }
    lanes.iter().fold(bytes.len() as u64, |sum, lane| mix(sum, *lane))
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_changed_bit_changes_it(mut bytes in prop::collection::vec(any::<u8>(), 1..200), at in any::<usize>()) {
            let before = checksum(&bytes);
            let at = at % (bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert_ne!(checksum(&bytes), before);
        }

        #[test]
        fn an_added_zero_changes_it(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let before = checksum(&bytes);
            bytes.push(0);
            prop_assert_ne!(checksum(&bytes), before);
        }
    }
}
