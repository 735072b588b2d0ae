//! Seeds: how a test's seed follows from its name, and how seeds are read and printed.
//!
//! A seed is an integer of any size, carried as decimal text so that no language has to agree on a width. The master
//! generator (`random.seed(seed)` and its kin) is seeded by the host language with the integer itself; everything else
//! derives from [`crate::stream::Key`].

use crate::digest::sha256;
use crate::limits::SEED_TEXT_LEN_MAX;
use core::fmt;

/// The seed of one test: the first eight bytes, big endian, of SHA-256 of its node id, XOR the session's base seed.
///
/// ```
/// use hermetic_model::seed::for_test;
/// assert_eq!(for_test("tests/test_a.py::test_x", 0) ^ 7, for_test("tests/test_a.py::test_x", 7));
/// ```
pub fn for_test(node_id: &str, base: u64) -> u64 {
    let digest = sha256(&[node_id.as_bytes()]);
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(head) ^ base
}

/// A decimal seed in its one canonical spelling: no plus sign, no leading zeros, no minus zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal<'text> {
    is_negative: bool,
    digits: &'text [u8],
}

/// Why a text is not a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeedError {
    Empty,
    TooLong { len: usize },
    NotDecimal { at: usize },
}

impl fmt::Display for SeedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeedError::Empty => out.write_str("the seed is empty")?,
            SeedError::TooLong { len } => write!(out, "the seed has {len} characters, more than {SEED_TEXT_LEN_MAX}")?,
            SeedError::NotDecimal { at } => write!(out, "the seed has something else than a digit at position {at}")?,
        }
        out.write_str("; accepted is a decimal integer such as 42 or -7")
    }
}

impl core::error::Error for SeedError {}

impl<'text> Decimal<'text> {
    /// Reads an optional sign and digits.
    ///
    /// ```
    /// use hermetic_model::seed::Decimal;
    /// assert_eq!(Decimal::parse(b"+007").unwrap().as_u64(), Some(7));
    /// assert!(Decimal::parse(b"0x2a").is_err());
    /// ```
    pub fn parse(text: &'text [u8]) -> Result<Decimal<'text>, SeedError> {
        if text.len() > SEED_TEXT_LEN_MAX {
            return Err(SeedError::TooLong { len: text.len() });
        }
        let (sign, digits) = match text {
            [sign @ (b'+' | b'-'), rest @ ..] => (Some(*sign), rest),
            _ => (None, text),
        };
        if digits.is_empty() {
            return Err(SeedError::Empty);
        }
        if let Some(at) = digits.iter().position(|byte| !byte.is_ascii_digit()) {
            return Err(SeedError::NotDecimal { at: at + usize::from(sign.is_some()) });
        }
        let zeros = digits.iter().take_while(|byte| **byte == b'0').count().min(digits.len() - 1);
        let digits = &digits[zeros..];
        Ok(Decimal { is_negative: sign == Some(b'-') && digits != b"0", digits })
    }

    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// The digits without sign and leading zeros.
    pub fn digits(&self) -> &'text [u8] {
        self.digits
    }

    /// The value, where it is in range.
    pub fn as_u64(&self) -> Option<u64> {
        if self.is_negative {
            return None;
        }
        self.digits.iter().try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative {
            out.write_str("-")?;
        }
        out.write_str(core::str::from_utf8(self.digits).unwrap_or(""))
    }
}
