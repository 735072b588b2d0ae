//! Threads that the table does not know: whether any of them may yet do something for those that it knows.
//!
//! One that waits without a limit for another thread, as the idle ones of a pool do, does nothing of its own accord; nor does
//! one that waits for a descriptor that leads nowhere but to this process. So where all are such, nothing will happen.

use crate::inside;
use crate::page::{Locked, THREADS_MAX};
use core::sync::atomic::Ordering;
use hermetic_engine::scheduler::State;
use hermetic_sys::task;

/// Whether a thread of this process that is not in the table may act without being asked to.
pub fn may_act(locked: &mut Locked<'_>) -> bool {
    // SAFETY: no preconditions.
    let own = unsafe { libc::getpid() };
    let page = locked.page;
    let table = locked.table();
    let mut seated = [0; THREADS_MAX];
    let mut count = 0;
    for slot in 0..table.high as usize {
        let cell = page.cell(slot);
        if table.entries[slot].state != State::Free && cell.process.load(Ordering::Relaxed) == own {
            seated[count] = cell.thread.load(Ordering::Relaxed);
            count += 1;
        }
    }
    let seated = &seated[..count];
    if task::threads(own).is_some_and(|threads| threads <= count as u64) {
        return false;
    }
    let mut may_act = false;
    task::for_each_thread(own, |thread| {
        if !may_act && !seated.contains(&thread) {
            may_act = task::system_call(thread).is_none_or(|call| !needs_others(call));
        }
    });
    may_act
}

/// Whether a system call that a thread waits in is ended by this process's other threads, or by nobody.
fn needs_others(call: [u64; 7]) -> bool {
    let [number, first, second, _, fourth, ..] = call;
    let descriptor = first as i32;
    match number as libc::c_long {
        libc::SYS_futex => is_without_limit(second as i32, fourth),
        libc::SYS_read | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_accept | libc::SYS_accept4 => {
            inside::is_inside(descriptor)
        }
        libc::SYS_epoll_pwait => fourth as i32 == -1 && inside::is_inside(descriptor),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => fourth as i32 == -1 && inside::is_inside(descriptor),
        _ => false,
    }
}

/// Whether a futex is this process's alone, and waited for until somebody wakes. `limit` is the address of a time, or 0.
fn is_without_limit(operation: i32, limit: u64) -> bool {
    let is_private = operation & libc::FUTEX_PRIVATE_FLAG != 0;
    let operation = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    is_private && limit == 0 && matches!(operation, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE_WAIT: u64 = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;

    fn call(number: libc::c_long, arguments: [u64; 4]) -> [u64; 7] {
        let [first, second, third, fourth] = arguments;
        [number as u64, first, second, third, fourth, 0, 0]
    }

    #[test]
    fn a_wait_for_another_thread_needs_it_unless_it_has_a_limit() {
        assert!(needs_others(call(libc::SYS_futex, [0x1000, PRIVATE_WAIT, 0, 0])));
        assert!(!needs_others(call(libc::SYS_futex, [0x1000, PRIVATE_WAIT, 0, 0x7fff_0000])));
        assert!(!needs_others(call(libc::SYS_nanosleep, [0x7fff_0000, 0, 0, 0])));
        assert!(!needs_others(call(libc::SYS_clock_nanosleep, [0, 0, 0x7fff_0000, 0])));
    }

    #[test]
    fn a_read_needs_others_where_nobody_outside_can_write() {
        let mut fds = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(fds.as_mut_ptr()) }, 0);
        assert!(needs_others(call(libc::SYS_read, [fds[0] as u64, 0, 0, 0])));
        assert!(!needs_others(call(libc::SYS_read, [0, 0, 0, 0])), "somebody types");
    }

    #[test]
    fn the_kernel_tells_what_a_thread_waits_in() {
        let (told, thread) = std::sync::mpsc::channel();
        let (end, gate) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            told.send(task::own_id()).expect("the test waits for it");
            let _ = gate.recv();
        });
        let thread = thread.recv().expect("it tells its number");
        // It takes a moment to get there.
        let call = (0..10_000).find_map(|_| {
            std::thread::yield_now();
            task::system_call(thread).filter(|call| call[0] == libc::SYS_futex as u64)
        });
        drop(end);
        waiting.join().expect("it only waits");
        let Some(call) = call else { return assert!(!std::path::Path::new("/proc/self/syscall").exists()) };
        assert!(needs_others(call), "{call:?}");
    }
}
