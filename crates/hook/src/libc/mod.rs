//! The hooks, one file per libc header.
//!
//! Each hook reads the same way: enter a [`crate::guard::Call`], convert, ask the engine, convert back; otherwise call what
//! the name meant before. The list of names, with what each does, is `spec/hooks.toml`.

pub mod dirent;
pub mod dlfcn;
pub mod exec;
pub mod fcntl;
pub mod mqueue;
pub mod netdb;
pub mod poll;
pub mod pthread;
pub mod pthread_rwlock;
pub mod pwd;
pub mod semaphore;
pub mod signal;
pub mod stdio;
pub mod stdlib;
pub mod sys_epoll;
pub mod sys_file;
pub mod sys_futex;
pub mod sys_random;
pub mod sys_select;
pub mod sys_sem;
pub mod sys_socket;
pub mod sys_stat;
pub mod sys_timerfd;
pub mod sys_wait;
pub mod threads;
pub mod time;
pub mod unistd;

use crate::table::Hook;

/// All rows.
pub fn tables() -> impl Iterator<Item = &'static [Hook]> {
    [
        dirent::TABLE,
        dlfcn::TABLE,
        exec::TABLE,
        fcntl::TABLE,
        mqueue::TABLE,
        netdb::TABLE,
        poll::TABLE,
        pthread::TABLE,
        pthread_rwlock::TABLE,
        pwd::TABLE,
        semaphore::TABLE,
        signal::TABLE,
        stdio::TABLE,
        stdlib::TABLE,
        sys_epoll::TABLE,
        sys_file::TABLE,
        sys_random::TABLE,
        sys_select::TABLE,
        sys_sem::TABLE,
        sys_socket::TABLE,
        sys_stat::TABLE,
        sys_timerfd::TABLE,
        sys_wait::TABLE,
        threads::TABLE,
        time::TABLE,
        unistd::TABLE,
    ]
    .into_iter()
}
