//! Children that are not in the table: while one is alive, somebody outside may still answer, and time follows real time.

use crate::fork;
use crate::page::{External, Locked, Page, PROCESSES_MAX};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use hermetic_sys::task::{self, Name};

/// Children that were there when the sandbox was entered, or that one above it has left behind: servers of a session, the harness's
/// own. Of further ones nothing is remembered.
#[repr(C)]
pub struct Existing([AtomicI32; EXISTING_MAX]);
const EXISTING_MAX: usize = 1024;

impl Existing {
    fn contains(&self, child: i32) -> bool {
        self.0.iter().any(|place| place.load(Ordering::Relaxed) == child)
    }

    fn add(&self, child: i32) {
        if let Some(place) = self.0.iter().find(|place| place.load(Ordering::Relaxed) == 0) {
            place.store(child, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
}

static IGNORED: AtomicBool = AtomicBool::new(false);

/// How long a child is outside before it counts as one that takes no part: others are just starting.
const START_NS: i64 = 100_000_000;

/// Stands for a child where no child but an answer from outside is waited for.
pub const ANSWER: i32 = 0;

/// Who keeps time from jumping: a child of one that takes part, which is alive and takes none, or [`ANSWER`] where one `is_owed`.
/// A child that is just starting is such a one for a moment, whoever has started it.
pub fn find_external(page: &Page, processes: &[i32; PROCESSES_MAX], is_owed: impl FnOnce() -> bool) -> Option<i32> {
    if IGNORED.load(Ordering::Relaxed) {
        return None;
    }
    if is_owed() {
        return Some(ANSWER);
    }
    let mut external = None;
    let mut visit = |child| {
        if external.is_none() && !processes.contains(&child) && !page.existing.contains(child) && task::is_alive(child)
        {
            external = Some(child);
        }
    };
    let own = fork::owner();
    if has_any() {
        task::for_each_child(own, &mut visit);
    }
    processes.iter().filter(|&&process| process != 0 && process != own).for_each(|&parent| {
        task::for_each_child(parent, &mut visit);
    });
    external
}

/// Remembers that a child outside keeps time from jumping.
pub fn note_external(locked: &mut Locked<'_>, child: i32, now_ns: i64) {
    let page = locked.page;
    let externals = &mut locked.table().externals;
    let place = externals.iter().position(|seen| seen.process == child);
    let Some(index) = place.or_else(|| externals.iter().position(|seen| seen.process == 0)) else { return };
    let seen = &mut externals[index];
    if place.is_none() {
        *seen = External { process: child, since_ns: now_ns, ..External::default() };
    }
    // It may have become another program.
    let name = task::name(child);
    if name != Name::default() {
        seen.name = name;
    }
    seen.is_settled |= now_ns - seen.since_ns > START_NS;
    page.has_externals.store(1, Ordering::Relaxed);
}

/// Whether time follows at every look: the child for whose sake it does has been outside for so long that it will not come in.
pub fn is_settled(locked: &mut Locked<'_>) -> bool {
    let table = locked.table();
    let child = table.follow_child;
    if child == ANSWER {
        // One that comes before anybody's time is up takes none: how long it was on its way is no part of the test.
        return false;
    }
    let mut all = table.externals.iter();
    // One for which there was no place is not waited for.
    all.find(|seen| seen.process == child).is_none_or(|seen| seen.is_settled)
}

/// Calls `visit` with the name of each child that took no part, once.
pub fn take_externals(page: &Page, mut visit: impl FnMut(&str)) {
    if page.has_externals.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut locked = page.lock();
    let is_news = |seen: &&mut External| seen.is_settled && !seen.is_told;
    let mut names = [Name::default(); crate::page::EXTERNALS_MAX];
    let mut count = 0;
    for seen in locked.table().externals.iter_mut().filter(is_news) {
        names[count] = seen.name;
        count += 1;
        seen.is_told = true;
    }
    drop(locked);
    names[..count].iter().for_each(|name| visit(name.as_str()));
}

/// Whether this process may have children at all; most never have.
static MAY_EXIST: AtomicBool = AtomicBool::new(false);

/// A child is about to be started. Also for a child of vfork, which shares its parent's memory.
pub fn note_start() {
    MAY_EXIST.store(true, Ordering::Relaxed);
}

/// Looks, once and before the first sandbox, for children that were started while nobody was watching.
pub fn look() {
    if has_any() {
        note_start();
    }
}

/// Remembers the children of the moment: they are no part of what begins now.
pub fn note_existing(page: &Page) {
    if !MAY_EXIST.load(Ordering::Relaxed) {
        return;
    }
    page.existing.clear();
    if has_any() {
        task::for_each_child(fork::owner(), |child| page.existing.add(child));
    }
}

/// The same for what goes on: a sandbox above it is left, and nobody looks after the children of that one any more.
pub fn note_left_behind(locked: &mut Locked<'_>) {
    if !MAY_EXIST.load(Ordering::Relaxed) || !has_any() {
        return;
    }
    let existing = &locked.page.existing;
    let seated = locked.seated_processes();
    let externals = &locked.table().externals;
    task::for_each_child(fork::owner(), |child| {
        let is_known = seated.contains(&child) || externals.iter().any(|seen| seen.process == child);
        if !is_known && !existing.contains(child) {
            existing.add(child);
        }
    });
}

/// Decides as if nobody were outside: real time has come to where virtual time would jump.
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
