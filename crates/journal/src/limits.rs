//! Every bound of the format, in one place. Writers stop at them, so that readers never meet more.

/// Bytes of a journal in its raw form. A writer that reaches it reports [`crate::Full`]; a reader refuses to unpack more.
pub const JOURNAL_BYTES_MAX: usize = 1 << 30;

/// Bytes of the head.
pub const HEAD_BYTES_MAX: usize = 16 << 20;

/// Integer fields of one event.
pub const INTEGERS_MAX: usize = 6;

/// Variable-length fields of one event.
pub const BLOBS_MAX: usize = 2;

/// Bytes of a variable-length integer of 64 bits.
pub const VARINT_BYTES_MAX: usize = 10;
