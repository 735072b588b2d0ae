//! SHA-256 against an independent implementation, at all lengths around block boundaries and cut at any place.

use hermetic_model::digest::sha256;
use sha2::{Digest, Sha256};

#[test]
fn agrees_at_every_length_around_a_block() {
    let bytes: Vec<u8> = (0..200u8).map(|index| index.wrapping_mul(37)).collect();
    for len in 0..bytes.len() {
        let (head, tail) = bytes[..len].split_at(len / 3);
        let expected: [u8; 32] = Sha256::digest(&bytes[..len]).into();
        assert_eq!(sha256(&[head, tail]), expected, "length {len}");
    }
}
