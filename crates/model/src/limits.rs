//! Named bounds of the model and the policy. Every queue, table and range in this workspace that has an end has it here or
//! beside its owner, never as a bare number.

/// Longest decimal text of a seed, sign included. A seed is an integer of any practical size, not a document.
pub const SEED_TEXT_LEN_MAX: usize = 4096;

/// Largest move of the monotonic clocks per reading: a day, in picoseconds.
pub const TICK_PS_MAX: u64 = 86_400 * 1_000_000_000_000;
