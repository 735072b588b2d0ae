//! Children that are not in the table: while one is alive, somebody outside may still answer, and time follows real time.

use crate::page::PROCESSES_MAX;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use hermetic_sys::task;

/// Children that were there when the sandbox was entered: servers of a session, the harness's own.
static EXISTING: [AtomicI32; EXISTING_MAX] = [const { AtomicI32::new(0) }; EXISTING_MAX];
const EXISTING_MAX: usize = 64;

static IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether a child is alive that the table does not know.
pub fn is_external(processes: &[i32; PROCESSES_MAX]) -> bool {
    if IGNORED.load(Ordering::Relaxed) || !has_any() {
        return false;
    }
    let is_known = |child: i32| {
        processes.contains(&child) || EXISTING.iter().any(|existing| existing.load(Ordering::Relaxed) == child)
    };
    let mut is_external = false;
    task::for_each_child(|child| is_external |= !is_known(child) && task::is_alive(child));
    is_external
}

/// Remembers the children of the moment: they are no part of what begins now.
pub fn note_existing() {
    for place in &EXISTING {
        place.store(0, Ordering::Relaxed);
    }
    if !has_any() {
        return;
    }
    let mut places = EXISTING.iter();
    task::for_each_child(|child| {
        if let Some(place) = places.next() {
            place.store(child, Ordering::Relaxed);
        }
    });
}

/// Decides as if there were no such children: real time has come to where virtual time would jump.
pub fn while_ignored(decide: impl FnOnce()) {
    IGNORED.store(true, Ordering::Relaxed);
    decide();
    IGNORED.store(false, Ordering::Relaxed);
}

fn has_any() -> bool {
    let mut info = core::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: valid for writing; WNOWAIT leaves the children as they are.
    unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) == 0 }
}
