//! Every bound of the format, in one place. Writers stop at them, so that readers never meet more.

/// Bytes of a journal: in its raw form, and of the text of its readable form. A writer that reaches it reports
/// [`crate::Full`]; a reader refuses to unpack more.
pub const JOURNAL_BYTES_MAX: usize = 1 << 30;

/// Bytes of the head.
pub const HEAD_BYTES_MAX: usize = 4 << 20;

/// Integer fields of one event.
pub const INTEGERS_MAX: usize = 4;

/// Variable-length fields of one event.
pub const BLOBS_MAX: usize = 2;

/// Bytes of a variable-length integer of 64 bits.
pub const VARINT_BYTES_MAX: usize = 10;

/// Problems that one check lists before it stops.
pub const PROBLEMS_MAX: usize = 20;
