//! Variable-length integers: seven bits a byte, least significant first, the top bit says that more follow.

use crate::limits::VARINT_BYTES_MAX;

/// Writes `value` at the start of `out`, which must be long enough; returns how many bytes it took.
#[inline]
pub fn put(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = (value as u8) | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Reads a value from the start of `bytes`; returns it with its length, or nothing when it is cut off or too large.
#[inline]
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte holds only the topmost bit of 64.
        if at == VARINT_BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            // One value has one spelling: a trailing zero byte is refused.
            return (byte != 0 || at == 0).then_some((value, at + 1));
        }
    }
    None
}

/// Maps signed to unsigned so that values near zero stay short.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = [0; VARINT_BYTES_MAX];
            let len = put(&mut out, value);
            assert_eq!(get(&out[..len]), Some((value, len)));
            assert_eq!(get(&out[..len - 1]), None, "a cut-off value is refused");
        }
    }

    #[test]
    fn signs_come_back() {
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn too_large_and_padded_values_are_refused() {
        assert_eq!(get(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), None);
        assert_eq!(get(&[0x80, 0x00]), None);
    }
}
