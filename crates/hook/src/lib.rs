//! `libhermetic.so`: the one engine of a process, and the hooks that ask it.
//!
//! The library is opened by a front end, which finds [`api`] by the symbol `hermetic_abi`; nothing happens until it asks to
//! attach. From then on every object's relocation slots for the names in `spec/hooks.toml` lead here. A slot leads on to
//! the real function at the cost of one atomic load while no sandbox is entered.
//!
//! * [`attach`] rewrites slots; [`table`] holds the rows; [`libc`] has the hooks, one file per header
//! * [`guard`] is how each hook begins; [`threads`] keeps the records of threads; [`fork`] carries both over a fork
//! * [`parking`] makes waits virtual over the [`page`] that processes share; [`settle`] carries decisions out, [`watch`] looks
//!   after what rings no bell, [`computing`] after those who hold time still
//! * [`glance`] gives others their turn at calls that need not wait, and knows what they find; [`reading`] how many bytes there are
//! * [`inherit`] lets started programs take part; [`views`] shows clocks to servers that follow them, where [`follower`] reads them
//! * [`timers`] are timers that are descriptors
//! * [`wait`], [`condition`], [`address`], [`descriptors`], [`openssl`], [`sink`] convert at the edge
//! * [`network`] asks the sandbox, then [`floor`], which lies under all sandboxes
//! * [`api`] is the C ABI; [`host`] is the language above
//!
//! The invariants that the `SAFETY` comments name (H1 to H8) stand in `ARCHITECTURE.md`.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc, reason = "hooks have the contract of the libc function whose name they bear")]

mod address;
pub mod api;
mod attach;
mod children;
mod computing;
mod condition;
mod descriptors;
mod floor;
mod follower;
mod foreign;
mod fork;
mod front;
mod glance;
mod guard;
mod host;
mod host_lock;
mod inherit;
mod inside;
mod jumps;
mod libc;
mod network;
mod openssl;
mod outside;
mod page;
mod parking;
mod pipes;
mod reading;
mod semaphores;
mod settle;
mod sink;
mod table;
mod threads;
mod timers;
mod views;
mod wait;
mod watch;
