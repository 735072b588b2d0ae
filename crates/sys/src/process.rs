//! Processes, as a supervisor needs them: leaving the caller's session, closing what was inherited, new namespaces, and the
//! System V segments of processes that were killed.
//!
//! Everything that has a safe wrapper elsewhere (pidfds, waiting, signals) is not repeated here. What is done with these is
//! the business of the crates above.

use std::io;
use std::os::fd::RawFd;

/// Goes on in a child in a session of its own; the calling process ends with exit code 0 at once.
///
/// # Errors
/// The system refused a new process or session.
///
/// # Panics
/// When the process has more than one thread: the others would not exist in the child, whatever locks they hold.
pub fn detach() -> io::Result<()> {
    assert_eq!(thread_count()?, 1, "only a process with a single thread can detach");
    // SAFETY: there is one thread (checked above), so the child has all there is.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: ends this process without running anything that the child will run too.
        _ => unsafe { libc::_exit(0) },
    }
    // SAFETY: no arguments; a child that was just made leads no group.
    if unsafe { libc::setsid() } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Closes every descriptor from `first` on. For programs that have just started and own none of them.
///
/// # Errors
/// The kernel neither knows `close_range` nor shows `/proc/self/fd`.
pub fn close_descriptors_from(first: RawFd) -> io::Result<()> {
    // SAFETY: a fresh program owns no descriptor from `first` on (the caller's promise), so none is in use.
    let status = unsafe { libc::syscall(libc::SYS_close_range, first as libc::c_uint, libc::c_uint::MAX, 0) };
    if status == 0 {
        return Ok(());
    }
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number >= first)
        .collect();
    for number in open {
        // SAFETY: as above; the listing's own descriptor is closed already, which close(2) answers with EBADF.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Puts the calling process into new namespaces (`CLONE_NEW…` of libc).
///
/// # Errors
/// The kernel or its configuration refuses.
pub fn unshare(flags: i32) -> io::Result<()> {
    assert_eq!(flags & (libc::CLONE_FILES | libc::CLONE_VM), 0, "only namespaces can be unshared here");
    // SAFETY: without CLONE_FILES and CLONE_VM no memory or descriptor changes its owner.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives up root for good: no supplementary groups, then this group and this user.
///
/// # Errors
/// The caller is not root. Some of it may be done then: end the process.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: an empty list is not read.
    let groups = unsafe { libc::setgroups(0, core::ptr::null()) };
    // SAFETY: plain values. The group first: afterwards there is no right to change it.
    let group = unsafe { libc::setgid(group) };
    // SAFETY: plain values.
    let user = unsafe { libc::setuid(user) };
    if groups != 0 || group != 0 || user != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes the first process of a new pid namespace and waits for it: the child returns `Ok(None)`, the parent, which passes
/// nothing on, returns the child's exit code.
///
/// # Errors
/// The system refused a new process.
pub fn fork_and_wait() -> io::Result<Option<i32>> {
    assert_eq!(thread_count()?, 1, "only a process with a single thread can fork");
    // SAFETY: there is one thread (checked above), so the child has all there is.
    let child = unsafe { libc::fork() };
    if child == -1 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        return Ok(None);
    }
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable, and `child` is ours.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if ended == child {
            let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
            return Ok(Some(code));
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(io::Error::last_os_error());
        }
    }
}

/// Removes a System V shared memory segment that no process has attached. True if it is gone now.
///
/// The key is compared first: the number of a segment can have been given to somebody else since.
pub fn remove_shared_segment(key: i32, id: i32) -> bool {
    let mut state = core::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: `state` is writable and large enough for the answer.
    if unsafe { libc::shmctl(id, libc::IPC_STAT, state.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call above has filled it.
    let state = unsafe { state.assume_init() };
    if state.shm_perm.__key != key || state.shm_nattch != 0 {
        return false;
    }
    // SAFETY: removing takes no buffer.
    unsafe { libc::shmctl(id, libc::IPC_RMID, core::ptr::null_mut()) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_removed_only_under_its_own_key() {
        let key = 0x6865_7200 | (std::process::id() as i32 & 0xff);
        // SAFETY: plain values.
        let id = unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0, "this machine gives out no System V segment");
        assert!(!remove_shared_segment(key + 1, id));
        assert!(remove_shared_segment(key, id));
        assert!(!remove_shared_segment(key, id));
    }

    #[test]
    #[should_panic(expected = "single thread")]
    fn a_process_with_threads_does_not_detach() {
        let _ = detach();
    }
}
