//! `#[hermetic::test]`: makes a function a test that runs in a sandbox.
//!
//! Parsing is done by hand, because a parser for all of Rust would take longer to compile than everything else here. What an
//! option's value means is the business of `hermetic-model` and `hermetic-policy`; running a test is the crate `hermetic`'s.
//!
//! * [`item`] takes the function apart; [`arguments`] reads the options, [`option`] checks them against [`table`]
//! * [`expand`] puts the test together; [`literal`] reads texts and numbers; [`error`] makes errors that point at their cause

mod arguments;
mod error;
mod expand;
mod item;
mod literal;
mod option;
mod table;

use expand::Position;
use proc_macro::TokenStream;

/// A test that runs in a sandbox: virtual time, randomness from a seed, no network.
///
/// It takes the place of `#[test]`, and stands above the attribute of an async run time where there is one. An `async fn`
/// without one is polled by a small executor of its own. The options, all of them by name, are those of `docs/options.md`:
/// `seed`, `now`, `tick`, `clock`, `rng`, `network`, `allow_loopback`, `allow_unix`, `strict_replay`, `spin_limit`,
/// `monotonic`, `network_strict`, `order`, `inherit`. Values that are written out are checked by the compiler.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments, item, Position::First)
}

/// What `test` becomes behind the attribute of a run time, which has made the test already.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn __inside(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments, item, Position::Inside)
}
