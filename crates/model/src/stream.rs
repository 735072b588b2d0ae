//! Entropy streams: ChaCha8 with a 64-bit block counter, one stream per (seed, thread pedigree, purpose).
//!
//! A stream is addressed, not handed on: its bytes depend on the three coordinates and the position and on nothing else,
//! neither on process numbers nor on which thread came first. The layout is the ordinary one of ChaCha with 64-bit counter
//! and 64-bit nonce: the nonce is the pedigree, and the purpose is the top byte of the counter, so each purpose owns 2^56
//! blocks. The prose contract is `spec/streams.md`.
//!
//! This is a source of repeatable numbers, not of secrets.

use crate::digest::sha256;
use crate::seed::Decimal;

const BLOCK_LEN: usize = 64;
const WORDS: usize = 16;
const DOUBLE_ROUNDS: usize = 4;
/// "expand 32-byte k", the constant of ChaCha with 256-bit keys.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
const KEY_DOMAIN: &[u8] = b"hermetic entropy key v1\0";
const PURPOSE_SHIFT: u32 = 56;

/// The key of all streams of one seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// The key of a decimal seed. Equal integers give equal keys, however they are spelled; text that is no integer is
    /// hashed as it stands (front ends refuse it before).
    ///
    /// ```
    /// use hermetic_model::stream::Key;
    /// assert_eq!(Key::from_seed(b"42"), Key::from_seed(b"+042"));
    /// assert_ne!(Key::from_seed(b"42"), Key::from_seed(b"-42"));
    /// ```
    pub fn from_seed(decimal: &[u8]) -> Key {
        match Decimal::parse(decimal) {
            Ok(seed) => {
                let sign: &[u8] = if seed.is_negative() { b"-" } else { b"" };
                Key(sha256(&[KEY_DOMAIN, sign, seed.digits()]))
            }
            Err(_) => Key(sha256(&[KEY_DOMAIN, decimal])),
        }
    }
}

/// Where a thread or process stands in the family tree below the thread that entered the sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pedigree(pub u64);

impl Pedigree {
    pub const ROOT: Pedigree = Pedigree(0);

    /// The `n`-th child (thread or process) that this one started, counted from 0 by the parent itself.
    ///
    /// ```
    /// use hermetic_model::stream::Pedigree;
    /// let first = Pedigree::ROOT.child(0);
    /// assert_ne!(first.child(1), Pedigree::ROOT.child(1).child(0));
    /// ```
    #[must_use]
    pub const fn child(self, n: u64) -> Pedigree {
        // The parent is mixed again before the child's number comes in, so that (1, 2) and (2, 1) part ways.
        Pedigree(mix(mix(self.0 ^ 0x6865_726d_6574_6963).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// Who this one is in a sandbox that it comes to from another one, whose seed has the key `home`: a child of nobody there.
    ///
    /// ```
    /// use hermetic_model::stream::{Key, Pedigree};
    /// let (own, home) = (Pedigree::ROOT.child(0), Key::from_seed(b"42"));
    /// assert_ne!(own.guest(&home), own);
    /// assert_ne!(own.guest(&home), own.guest(&Key::from_seed(b"43")));
    /// ```
    #[must_use]
    pub fn guest(self, home: &Key) -> Pedigree {
        let [a, b, c, d, e, f, g, h, ..] = home.0;
        Pedigree(mix(mix(self.0 ^ 0x7374_7261_6e67_6572) ^ u64::from_le_bytes([a, b, c, d, e, f, g, h])))
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit, and it is a bijection, so siblings never collide.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// What a stream is for. Different purposes never share bytes, so drawing for one leaves the others where they were.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum Purpose {
    /// What `getrandom` and its kin give to the program.
    Application = 0,
    /// OpenSSL's generator.
    Openssl = 1,
    /// The order of directory listings under `chaos`.
    Order = 2,
    /// Scheduling decisions.
    Schedule = 3,
    /// Hash seeds of language run times.
    HashSeed = 4,
    /// Names of temporary files and directories that the product itself makes.
    Names = 5,
    /// Seeds of other generators (NumPy, Hypothesis, plug-ins) that want a number of their own.
    Generators = 6,
}

impl Purpose {
    pub const ALL: [Purpose; 7] = [
        Purpose::Application,
        Purpose::Openssl,
        Purpose::Order,
        Purpose::Schedule,
        Purpose::HashSeed,
        Purpose::Names,
        Purpose::Generators,
    ];

    /// The purpose with that number, if there is one.
    pub fn from_u32(number: u32) -> Option<Purpose> {
        Purpose::ALL.get(number as usize).copied()
    }
}

/// A position in an endless, repeatable sequence of bytes. Plain data: it may be kept in static memory.
///
/// ```
/// use hermetic_model::stream::{Key, Pedigree, Purpose, Stream};
/// let key = Key::from_seed(b"42");
/// let (mut once, mut twice) = ([0; 16], [0; 16]);
/// Stream::new(&key, Pedigree::ROOT, Purpose::Application).fill(&mut once);
/// let mut stream = Stream::new(&key, Pedigree::ROOT, Purpose::Application);
/// stream.fill(&mut twice[..8]);
/// stream.fill(&mut twice[8..]);
/// assert_eq!(once, twice);
/// ```
#[derive(Debug)]
pub struct Stream {
    key: [u32; 8],
    nonce: u64,
    /// Counter of the next block to compute, purpose in its top byte.
    counter: u64,
    block: [u8; BLOCK_LEN],
    /// Bytes of `block` already given out; `BLOCK_LEN` means that there is none left.
    used: u32,
}

impl Stream {
    /// A stream that was never keyed, for static tables. Drawing from it gives the bytes of an all-zero key.
    pub const EMPTY: Stream =
        Stream { key: [0; 8], nonce: 0, counter: 0, block: [0; BLOCK_LEN], used: BLOCK_LEN as u32 };

    /// The stream at position 0.
    pub fn new(key: &Key, pedigree: Pedigree, purpose: Purpose) -> Stream {
        let mut words = [0; 8];
        for (word, chunk) in words.iter_mut().zip(key.0.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        Stream { key: words, nonce: pedigree.0, counter: u64::from(purpose as u32) << PURPOSE_SHIFT, ..Stream::EMPTY }
    }

    /// Draws the next `out.len()` bytes. The cut between draws does not matter.
    #[inline]
    pub fn fill(&mut self, mut out: &mut [u8]) {
        loop {
            let used = self.used as usize;
            let take = out.len().min(BLOCK_LEN - used);
            let (now, later) = out.split_at_mut(take);
            now.copy_from_slice(&self.block[used..used + take]);
            self.used = (used + take) as u32;
            if later.is_empty() {
                return;
            }
            out = later;
            self.refill();
        }
    }

    /// The next eight bytes as a little-endian number.
    pub fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`, each equally likely. A bound of 0 or 1 gives 0 and draws nothing.
    ///
    /// The high half of `bound * random` is the result; the few products that would favour small results are drawn again.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        let unfair = bound.wrapping_neg() % bound;
        // Each turn succeeds with probability above one half.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// How many bytes were drawn.
    pub fn position(&self) -> u64 {
        let blocks = self.counter & ((1 << PURPOSE_SHIFT) - 1);
        (blocks * BLOCK_LEN as u64).wrapping_sub((BLOCK_LEN - self.used as usize) as u64)
    }

    /// Moves to the place where `position` bytes have been drawn.
    pub fn seek(&mut self, position: u64) {
        let purpose = self.counter >> PURPOSE_SHIFT;
        self.counter = (purpose << PURPOSE_SHIFT) | (position / BLOCK_LEN as u64);
        self.used = BLOCK_LEN as u32;
        let rest = (position % BLOCK_LEN as u64) as u32;
        if rest > 0 {
            self.refill();
            self.used = rest;
        }
    }

    fn refill(&mut self) {
        self.block = block(&self.key, self.counter, self.nonce);
        // Within a purpose the counter wraps after 2^62 bytes, which no process lives to see.
        let (purpose, index) =
            (self.counter >> PURPOSE_SHIFT, self.counter.wrapping_add(1) & ((1 << PURPOSE_SHIFT) - 1));
        self.counter = (purpose << PURPOSE_SHIFT) | index;
        self.used = 0;
    }
}

type Row = [u32; 4];

fn block(key: &[u32; 8], counter: u64, nonce: u64) -> [u8; BLOCK_LEN] {
    let start: [Row; 4] = [
        CONSTANTS,
        [key[0], key[1], key[2], key[3]],
        [key[4], key[5], key[6], key[7]],
        [counter as u32, (counter >> 32) as u32, nonce as u32, (nonce >> 32) as u32],
    ];
    let mut rows = start;
    for _ in 0..DOUBLE_ROUNDS {
        quarter_rounds(&mut rows);
        // The diagonals become columns, and back again.
        rows = [rows[0], turn::<1>(rows[1]), turn::<2>(rows[2]), turn::<3>(rows[3])];
        quarter_rounds(&mut rows);
        rows = [rows[0], turn::<3>(rows[1]), turn::<2>(rows[2]), turn::<1>(rows[3])];
    }
    let mut out = [0; BLOCK_LEN];
    for index in 0..WORDS {
        let word = rows[index / 4][index % 4].wrapping_add(start[index / 4][index % 4]);
        out[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// Four quarter rounds side by side; written by rows so that the compiler uses vector registers.
#[inline(always)]
fn quarter_rounds(rows: &mut [Row; 4]) {
    let [a, b, c, d] = rows;
    *a = add(*a, *b);
    *d = xor_rotate::<16>(*d, *a);
    *c = add(*c, *d);
    *b = xor_rotate::<12>(*b, *c);
    *a = add(*a, *b);
    *d = xor_rotate::<8>(*d, *a);
    *c = add(*c, *d);
    *b = xor_rotate::<7>(*b, *c);
}

#[inline(always)]
fn add(left: Row, right: Row) -> Row {
    core::array::from_fn(|at| left[at].wrapping_add(right[at]))
}

#[inline(always)]
fn xor_rotate<const BITS: u32>(left: Row, right: Row) -> Row {
    core::array::from_fn(|at| (left[at] ^ right[at]).rotate_left(BITS))
}

#[inline(always)]
fn turn<const BY: usize>(row: Row) -> Row {
    core::array::from_fn(|at| row[(at + BY) % 4])
}
