//! Named bounds of the model and the policy. Every queue, table and range in this workspace that has an end has it here or
//! beside its owner, never as a bare number.

/// Longest decimal text of a seed, sign included. A seed is an integer of any practical size, not a document.
pub const SEED_TEXT_LEN_MAX: usize = 4096;

/// Wall clocks stay inside what signed 64-bit nanoseconds can say: 1677-09-21 to 2262-04-11.
pub const WALL_NS_MIN: i64 = i64::MIN;
pub const WALL_NS_MAX: i64 = i64::MAX;

/// Largest move of the monotonic clock per reading: one second, in picoseconds. Above that, code that reads the clock twice
/// sees every time-out expire.
pub const TICK_PS_MAX: u64 = 1_000_000_000_000;

/// Default number of readings without progress after which a thread counts as spinning.
pub const SPIN_LIMIT_DEFAULT: u64 = 1_000_000;
