//! What git would do with a command line, read from its configuration files and never by starting it.
//!
//! Followed as git follows them: global options, aliases, the repository from directory and variables, worktrees, the layers of
//! configuration with their includes, `pushRemote` and its fellows, `pushurl`, `insteadOf`, `pushInsteadOf`. Left out, because a
//! push of theirs is a git of its own and told by git itself: submodules, `git subtree`, programs named `git-…`.

pub mod arguments;
pub mod builtin;
pub mod config;
pub mod push;
pub mod remote;
pub mod repository;
