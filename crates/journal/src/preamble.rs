//! The fixed 64 bytes in front of every binary journal. All numbers are little-endian.
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | format version |
//! | 12 | 4 | flags, see [`flag`] |
//! | 16 | 8 | committed length: bytes of the raw form that are whole, preamble included ([`COMMITTED_OFFSET`]) |
//! | 24 | 4 | length of the head, which follows the preamble |
//! | 28 | 4 | finished form: CRC-32 of the raw form from byte 64 on |
//! | 32 | 8 | finished form: number of events |
//! | 40 | 24 | zero |

use crate::{Error, FORMAT_VERSION, FORMAT_VERSION_MIN};

/// Starts with a byte that is not ASCII and holds both line ends, so that text-mode copies are noticed.
pub const MAGIC: [u8; 8] = *b"\x89HMJ\r\n\x1a\n";

/// Bytes of the preamble.
pub const LEN: usize = 64;

/// Where a [`crate::Sink`] stores the committed length: eight bytes, aligned to eight.
pub const COMMITTED_OFFSET: usize = 16;

/// Bits of the flags.
pub mod flag {
    /// Everything after the preamble is one raw deflate stream, checked by the CRC and the number of events.
    pub const FINISHED: u32 = 1 << 0;
    pub(crate) const KNOWN: u32 = FINISHED;
}

/// The preamble as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    pub version: u32,
    pub flags: u32,
    pub committed_len: u64,
    pub head_len: u32,
    pub crc: u32,
    pub events: u64,
}

impl Preamble {
    /// The preamble as bytes.
    pub fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.version.to_le_bytes());
        out[12..16].copy_from_slice(&self.flags.to_le_bytes());
        out[16..24].copy_from_slice(&self.committed_len.to_le_bytes());
        out[24..28].copy_from_slice(&self.head_len.to_le_bytes());
        out[28..32].copy_from_slice(&self.crc.to_le_bytes());
        out[32..40].copy_from_slice(&self.events.to_le_bytes());
        out
    }

    /// Reads the preamble at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Preamble, Error> {
        if bytes.is_empty() || bytes.iter().take(LEN).all(|byte| *byte == 0) {
            return Err(Error::Empty);
        }
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
            return Err(Error::Foreign { what: "it does not begin like one" });
        }
        let Some(fixed) = bytes.first_chunk::<LEN>() else {
            return Err(Error::Truncated { have: bytes.len() as u64, need: LEN as u64 });
        };
        let version = u32_at(fixed, 8);
        if version > FORMAT_VERSION {
            return Err(Error::Newer { found: u64::from(version), supported: FORMAT_VERSION });
        }
        if version < FORMAT_VERSION_MIN {
            return Err(Error::corrupt(8, format!("format {version} never had a binary form")));
        }
        let flags = u32_at(fixed, 12);
        if flags & !flag::KNOWN != 0 {
            return Err(Error::corrupt(12, format!("unknown flags {flags:#x}")));
        }
        if fixed[40..].iter().any(|byte| *byte != 0) {
            return Err(Error::corrupt(40, "reserved bytes are not zero"));
        }
        Ok(Preamble {
            version,
            flags,
            committed_len: u64_at(fixed, COMMITTED_OFFSET),
            head_len: u32_at(fixed, 24),
            crc: u32_at(fixed, 28),
            events: u64_at(fixed, 32),
        })
    }
}

fn u32_at(bytes: &[u8; LEN], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; LEN], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
