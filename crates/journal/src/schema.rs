//! The table of event kinds: the one place that the binary form, the readable form and the spec's table come from.
//!
//! Any change here changes the format. A test compares a hash of this table with the one noted for
//! [`crate::FORMAT_VERSION`], so that a change without a new version fails.

use crate::event::{Clock, Reason, Source, WaitKind, Wake};

/// How a field is stored and written for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Unsigned, 32 bits.
    Count,
    /// Unsigned, 64 bits; readable form: sixteen hexadecimal digits.
    Identity,
    /// Signed, 32 bits.
    Signed,
    /// Signed nanoseconds, 64 bits.
    Nanoseconds,
    /// One of these names; stored as its index.
    Name(&'static [&'static str]),
    /// UTF-8.
    Text,
    /// Any bytes; readable form: hexadecimal.
    Bytes,
    /// Names separated by NUL; readable form: a list.
    Names,
}

impl Type {
    /// Whether the field is stored as a length and bytes rather than as an integer.
    pub const fn is_blob(self) -> bool {
        matches!(self, Type::Text | Type::Bytes | Type::Names)
    }
}

/// One field of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Type,
}

/// One kind of event.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub number: u8,
    pub name: &'static str,
    /// In the order of storage.
    pub fields: &'static [Field],
    /// Whether the mark `importing` can be set.
    pub can_import: bool,
}

const fn field(name: &'static str, kind: Type) -> Field {
    Field { name, kind }
}

const THREAD: Field = field("thread", Type::Count);
const SITE: Field = field("site", Type::Count);
const PORT: Field = field("port", Type::Signed);
const STATUS: Field = field("status", Type::Signed);

/// Numbers of the kinds. 18 to 31 are kept free for socket bytes.
pub mod number {
    pub const CLOCK: u8 = 1;
    pub const ENTROPY: u8 = 2;
    pub const WAIT: u8 = 3;
    pub const JUMP: u8 = 4;
    pub const THREAD_START: u8 = 5;
    pub const THREAD_END: u8 = 6;
    pub const SITE: u8 = 7;
    pub const LISTING: u8 = 8;
    pub const STATE: u8 = 9;
    pub const REFUSAL: u8 = 10;
    pub const LOOKUP: u8 = 11;
    pub const CHILD_EXIT: u8 = 12;
    pub const NOTE: u8 = 13;
    pub const WAKE: u8 = 14;
    pub const LOOKS: u8 = 15;
    pub const FOUND: u8 = 16;
    pub const GOT: u8 = 17;
}

/// All kinds; the row of a kind is its number minus one.
pub const KINDS: &[Kind] = &[
    Kind {
        number: number::CLOCK,
        name: "clock",
        fields: &[THREAD, SITE, field("clock", Type::Name(Clock::NAMES)), field("value_ns", Type::Nanoseconds)],
        can_import: true,
    },
    Kind {
        number: number::ENTROPY,
        name: "entropy",
        fields: &[THREAD, SITE, field("source", Type::Name(Source::NAMES)), field("bytes", Type::Bytes)],
        can_import: true,
    },
    Kind {
        number: number::WAIT,
        name: "wait",
        fields: &[THREAD, SITE, field("for", Type::Name(WaitKind::NAMES)), field("duration_ns", Type::Nanoseconds)],
        can_import: false,
    },
    Kind {
        number: number::JUMP,
        name: "jump",
        fields: &[THREAD, SITE, field("to_ns", Type::Nanoseconds), field("reason", Type::Name(Reason::NAMES))],
        can_import: false,
    },
    Kind {
        number: number::THREAD_START,
        name: "thread-start",
        fields: &[
            THREAD,
            field("parent", Type::Count),
            field("ordinal", Type::Count),
            field("pedigree", Type::Identity),
        ],
        can_import: false,
    },
    Kind { number: number::THREAD_END, name: "thread-end", fields: &[THREAD], can_import: false },
    Kind {
        number: number::SITE,
        name: "site",
        fields: &[
            field("id", Type::Count),
            field("line", Type::Count),
            field("file", Type::Text),
            field("function", Type::Text),
        ],
        can_import: true,
    },
    Kind {
        number: number::LISTING,
        name: "listing",
        fields: &[THREAD, SITE, field("names", Type::Names)],
        can_import: true,
    },
    Kind {
        number: number::STATE,
        name: "state",
        fields: &[THREAD, field("name", Type::Text), field("bytes", Type::Bytes)],
        can_import: false,
    },
    Kind {
        number: number::REFUSAL,
        name: "refusal",
        fields: &[THREAD, SITE, PORT, field("subject", Type::Text)],
        can_import: false,
    },
    Kind {
        number: number::LOOKUP,
        name: "lookup",
        fields: &[THREAD, SITE, PORT, STATUS, field("host", Type::Text), field("answers", Type::Text)],
        can_import: false,
    },
    Kind {
        number: number::CHILD_EXIT,
        name: "child-exit",
        fields: &[THREAD, SITE, field("child", Type::Count), STATUS],
        can_import: false,
    },
    Kind { number: number::NOTE, name: "note", fields: &[THREAD, field("remark", Type::Text)], can_import: false },
    Kind {
        number: number::WAKE,
        name: "wake",
        fields: &[THREAD, field("how", Type::Name(Wake::NAMES)), field("by", Type::Signed)],
        can_import: false,
    },
    Kind { number: number::LOOKS, name: "looks", fields: &[THREAD, field("count", Type::Count)], can_import: false },
    Kind {
        number: number::FOUND,
        name: "found",
        fields: &[THREAD, field("places", Type::Identity)],
        can_import: false,
    },
    Kind { number: number::GOT, name: "got", fields: &[THREAD, SITE, field("count", Type::Count)], can_import: false },
];

/// The last kind that journals of this version have: format 2 had no order of threads.
pub const fn last_kind(version: u32) -> u8 {
    if version == crate::FORMAT_VERSION_MIN {
        number::NOTE
    } else {
        number::GOT
    }
}

/// More fields than this, the kind and the marks included, no event has in the readable form.
pub(crate) const FIELDS_MAX: usize = 9;

/// The row of a kind's number.
pub fn kind(number: u8) -> Option<&'static Kind> {
    usize::from(number).checked_sub(1).and_then(|row| KINDS.get(row))
}
