//! Deflate and gzip around bytes in memory, with bounds on what comes out.

use std::io::{self, Read, Write};

use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::Compression;

use crate::limits::JOURNAL_BYTES_MAX;
use crate::Error;

/// The first bytes of every gzip stream that uses deflate.
pub(crate) const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes every write")
}

/// Gzip without a time stamp or a name, so that the same journal gives the same bytes.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes every write")
}

/// Unpacks exactly `len` bytes to the end of `out`. `before` is how many bytes of the file come before `bytes`.
pub(crate) fn inflate(bytes: &[u8], len: usize, before: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut decoder = DeflateDecoder::new(bytes);
    // One byte more than promised is enough to see that there is more.
    let read = decoder.by_ref().take(len as u64 + 1).read_to_end(out);
    if read.map_err(|error| damage(&error, before + bytes.len(), "the packed part"))? != len {
        return Err(Error::corrupt(before, format!("the packed part does not hold the promised {len} bytes")));
    }
    if decoder.total_in() != bytes.len() as u64 {
        return Err(Error::corrupt(before, "something follows the packed part"));
    }
    Ok(())
}

/// Unpacks one gzip member that is the whole input.
pub(crate) fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut decoder = GzDecoder::new(bytes);
    let mut out = Vec::new();
    let read = decoder.by_ref().take(JOURNAL_BYTES_MAX as u64 + 1).read_to_end(&mut out);
    read.map_err(|error| damage(&error, bytes.len(), "the gzip stream"))?;
    if out.len() > JOURNAL_BYTES_MAX {
        return Err(Error::TooLarge { bytes: out.len() as u64, limit: JOURNAL_BYTES_MAX as u64 });
    }
    if !decoder.into_inner().is_empty() {
        return Err(Error::corrupt(0, "something follows the gzip stream"));
    }
    Ok(out)
}

fn damage(error: &io::Error, have: usize, what: &str) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Error::Truncated { have: have as u64, need: have as u64 + 1 };
    }
    Error::corrupt(0, format!("{what} cannot be unpacked ({error})"))
}

/// CRC-32 as gzip computes it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
