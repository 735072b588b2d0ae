//! The one floor of this process, and what of it needs the machine: the user's home directory, findings of forked children.

use crate::guard;
use crate::host::Registered;
use core::ffi::CStr;
use core::net::IpAddr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use hermetic_abi::{finding, Finding};
use hermetic_engine::floor::{Floor, FloorSettings, Held};
use hermetic_engine::host::Host;
use hermetic_policy::{Policy, Target};
use std::ffi::CString;
use std::fmt::Write;
use std::sync::Mutex;

static FLOOR: Floor = Floor::new();

/// The process that laid the floor; its forked children add to the spool.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// What getpwuid tells, or null. Texts are never freed: an entry that a program keeps may point to one (H7).
static HOME: AtomicPtr<core::ffi::c_char> = AtomicPtr::new(core::ptr::null_mut());

/// What getpwuid tells while a sandbox has a home directory of its own, or null.
static SANDBOX_HOME: AtomicPtr<core::ffi::c_char> = AtomicPtr::new(core::ptr::null_mut());

/// The last home of a sandbox: entering the same place again costs no memory.
static LAST_HOME: Mutex<Option<&'static CStr>> = Mutex::new(None);

/// Homes and spools of the floors, lowest first.
static EXTRAS: Mutex<Vec<Extra>> = Mutex::new(Vec::new());

struct Extra {
    id: i64,
    home: Option<&'static CStr>,
    spool: Option<CString>,
}

/// What is this machine, and asked of no server.
static MACHINE: Policy = Policy::new(true, false);

/// Lays a floor.
pub fn enter(settings: &FloorSettings<'_>, home: &[u8], spool: &[u8]) -> Result<i64, String> {
    let text = |bytes: &[u8], what: &str| match bytes {
        [] => Ok(None),
        bytes => CString::new(bytes).map(Some).map_err(|_| format!("the path of the {what} has a NUL")),
    };
    let (home, spool) = (text(home, "home directory")?, text(spool, "spool")?);
    let id = FLOOR.enter(settings)?;
    // SAFETY: no preconditions.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
    let home: Option<&'static CStr> = home.map(|home| &*Box::leak(home.into_boxed_c_str()));
    let mut extras = extras();
    extras.push(Extra { id, home, spool });
    publish_home(&extras);
    Ok(id)
}

/// Takes a floor away.
pub fn leave(id: i64) -> bool {
    let mut extras = extras();
    extras.retain(|extra| extra.id != id);
    publish_home(&extras);
    FLOOR.leave(id)
}

fn extras() -> std::sync::MutexGuard<'static, Vec<Extra>> {
    EXTRAS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn publish_home(extras: &[Extra]) {
    let home = extras.iter().rev().find_map(|extra| extra.home);
    HOME.store(home.map_or(core::ptr::null_mut(), |home| home.as_ptr().cast_mut()), Ordering::Release);
}

/// The home directory that this user has here, as C text that lives for ever; null leaves the real one.
#[inline]
pub fn home() -> *mut core::ffi::c_char {
    let nearest = SANDBOX_HOME.load(Ordering::Acquire);
    if nearest.is_null() {
        HOME.load(Ordering::Acquire)
    } else {
        nearest
    }
}

/// A sandbox has a home directory of its own; an empty path: no more. False: the path has a NUL.
pub fn set_home(path: &[u8]) -> bool {
    if path.is_empty() {
        SANDBOX_HOME.store(core::ptr::null_mut(), Ordering::Release);
        return true;
    }
    let mut last = LAST_HOME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let home = match *last {
        Some(home) if home.to_bytes() == path => home,
        _ => match CString::new(path) {
            Ok(new) => Box::leak(new.into_boxed_c_str()),
            Err(_) => return false,
        },
    };
    *last = Some(home);
    SANDBOX_HOME.store(home.as_ptr().cast_mut(), Ordering::Release);
    true
}

#[inline]
pub fn is_active() -> bool {
    FLOOR.is_active()
}

pub fn allow(entry: &str) -> Result<(), String> {
    FLOOR.allow(entry)
}

/// Judges an attempt; nothing is recorded.
pub fn judge(what: &str, target: &Target<'_>) -> Option<Finding> {
    // A host that is not named asks nobody.
    if matches!(target, Target::Name { host: [], port: None }) {
        return None;
    }
    FLOOR.judge(what, target)
}

/// Names of this machine are looked up in a file of it, whatever they are for: binding to `localhost` is nobody's business.
pub fn is_hidden_look_up_refused(target: &Target<'_>) -> bool {
    FLOOR.judge("look up", target).is_some() && !MACHINE.decide(target).is_allowed()
}

pub fn remember(name: &[u8], address: IpAddr) {
    FLOOR.remember(name, address);
}

/// Records what the floor refused, with the place that asked. Findings of sandboxes are recorded already.
pub fn note_with_site(mut found: Finding) {
    if found.kind != finding::FLOOR_NETWORK {
        return;
    }
    // The host adapter may call libc: that is not the program's doing (H5).
    guard::real_begin();
    hermetic_engine::floor::write_site(&Registered as &dyn Host, &mut found);
    guard::real_end();
    note(&found);
}

/// Records a finding; a forked child hands it to its parent.
pub fn note(found: &Finding) {
    // SAFETY: no preconditions.
    if unsafe { libc::getpid() } == OWNER.load(Ordering::Acquire) {
        FLOOR.note(found);
        return;
    }
    let extras = extras();
    if let Some(spool) = extras.iter().rev().find_map(|extra| extra.spool.as_deref()) {
        append(spool, line(found).as_bytes());
    }
}

/// One line: kind, port, count, subject, message and site, separated by tabs.
fn line(found: &Finding) -> String {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let mut line = format!("{}\t{}\t{}", found.kind, found.port, found.count);
    for text in [&found.subject, &found.message, &found.site] {
        let _ = write!(line, "\t{}", plain(text.as_str()));
    }
    line.push('\n');
    line
}

fn append(path: &CStr, bytes: &[u8]) {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return;
    }
    // SAFETY: the bytes are valid for reading; a short write loses a finding and nothing else.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: the descriptor is ours.
    unsafe { libc::close(fd) };
}

pub fn pending() -> u32 {
    FLOOR.pending()
}

pub fn take() -> Option<Finding> {
    FLOOR.take()
}

/// Both locks.
#[allow(dead_code, reason = "held, not read")]
pub struct Locks(std::sync::MutexGuard<'static, Vec<Extra>>, Held<'static>);

/// Holds the locks, so that a fork does not copy them half-way.
pub fn lock() -> Locks {
    Locks(extras(), FLOOR.hold())
}
