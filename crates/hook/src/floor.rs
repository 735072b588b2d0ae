//! The one floor of this process, and what of it needs the machine: the user's home directory, findings of other processes,
//! and the floors of programs that it starts.
//!
//! A started program is told of the floors by a variable, `HERMETIC_FLOOR`: files beside the spools, one a line. The library,
//! which is preloaded into it, reads them before the program begins.

use crate::host::Registered;
use crate::{fork, guard};
use core::ffi::c_char;
use core::ffi::CStr;
use core::net::IpAddr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use hermetic_abi::{finding, Finding};
use hermetic_engine::floor::{Floor, FloorSettings, Held};
use hermetic_engine::floor_file::{self, FloorFile};
use hermetic_engine::host::Host;
use hermetic_policy::{Policy, Target};
use hermetic_sys::task;
use std::ffi::CString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

static LAID: Floor = Floor::new();

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
    /// What started programs read.
    file: Option<PathBuf>,
    is_inherited: bool,
}

/// The variable that tells started programs of the floors.
pub const NAME: &str = "HERMETIC_FLOOR";
pub const NAME_C: &CStr = c"HERMETIC_FLOOR";

/// That variable with its value, as C text that lives for ever, or null where there is nothing to tell.
static VARIABLE: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Who refuses where a started program cannot read what it lies on.
const UNKNOWN: &str = "the floor of the program that started this one, which cannot be read any more,";

/// What this program was told to its parent already: one that tries again and again is told once.
static TOLD: Mutex<Vec<(u32, i32, String)>> = Mutex::new(Vec::new());
const TOLD_MAX: usize = 64;

/// What is this machine, and asked of no server.
static MACHINE: Policy = Policy::new(true, false);

/// Lays a floor.
pub fn enter(settings: &FloorSettings<'_>, home: &[u8], spool: &[u8]) -> Result<i64, String> {
    let text = |bytes: &[u8], what: &str| match bytes {
        [] => Ok(None),
        bytes => CString::new(bytes).map(Some).map_err(|_| format!("the path of the {what} has a NUL")),
    };
    let file = write_file(settings, home, spool)?;
    let (home, spool) = (text(home, "home directory")?, text(spool, "spool")?);
    let id = LAID.enter(settings)?;
    // SAFETY: no preconditions.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
    let home: Option<&'static CStr> = home.map(|home| &*Box::leak(home.into_boxed_c_str()));
    let mut extras = extras();
    extras.push(Extra { id, home, spool, file, is_inherited: false });
    publish(&extras);
    Ok(id)
}

/// Writes what started programs shall read, beside the spool; nothing where there is none.
fn write_file(settings: &FloorSettings<'_>, home: &[u8], spool: &[u8]) -> Result<Option<PathBuf>, String> {
    if spool.is_empty() {
        return Ok(None);
    }
    let (Ok(home), Ok(spool)) = (core::str::from_utf8(home), core::str::from_utf8(spool)) else {
        return Err("the paths of the home directory and the spool must be UTF-8".to_owned());
    };
    let path = PathBuf::from(format!("{spool}.floor"));
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    // Under another name first: whoever reads it sees all of it.
    let fresh = PathBuf::from(format!("{spool}.floor.new"));
    std::fs::write(&fresh, floor_file::encode(settings, home, spool)).map_err(failed)?;
    std::fs::rename(&fresh, &path).map_err(failed)?;
    Ok(Some(path))
}

/// In a program that was started: lays the floors of the one that started it.
pub fn inherit(paths: &str) {
    let mut extras = extras();
    for path in paths.lines().map(Path::new) {
        let text = std::fs::read_to_string(path).ok();
        let file = text.as_deref().and_then(floor_file::decode).unwrap_or_else(|| FloorFile::closed(UNKNOWN));
        // An entry that this release does not know must not open anything.
        let Ok(id) = LAID.enter(&file.settings()).or_else(|_| LAID.enter(&FloorFile::closed(UNKNOWN).settings()))
        else {
            continue;
        };
        let text = |text: &str| CString::new(text).ok().filter(|text| !text.is_empty());
        let home = text(&file.home).map(|home| &*Box::leak(home.into_boxed_c_str()));
        extras.push(Extra { id, home, spool: text(&file.spool), file: Some(path.to_owned()), is_inherited: true });
    }
    publish(&extras);
}

/// `HERMETIC_FLOOR=…` for a program that is started now, if there is a floor to be told of. For hooks.
#[inline]
pub fn variable() -> Option<&'static CStr> {
    let text = VARIABLE.load(Ordering::Acquire);
    // SAFETY: null, or C text that lives for ever.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Takes a floor away.
pub fn leave(id: i64) -> bool {
    let mut extras = extras();
    extras.retain(|extra| extra.id != id);
    publish(&extras);
    LAID.leave(id)
}

fn extras() -> std::sync::MutexGuard<'static, Vec<Extra>> {
    EXTRAS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Shows hooks what they need; texts that are replaced are not freed, because somebody may be reading them (H7).
fn publish(extras: &[Extra]) {
    let files: Vec<_> = extras.iter().filter_map(|extra| extra.file.as_ref()?.to_str()).collect();
    let text = CString::new(format!("{NAME}={}", files.join("\n"))).ok().filter(|_| !files.is_empty());
    VARIABLE.store(text.map_or(core::ptr::null_mut(), CString::into_raw), Ordering::Release);
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
    LAID.is_active()
}

pub fn allow(entry: &str) -> Result<(), String> {
    LAID.allow(entry)?;
    // Programs that are started from now on shall reach it too.
    let line = floor_file::allow_line(entry);
    for file in extras().iter().filter_map(|extra| extra.file.as_ref()) {
        let added = std::fs::OpenOptions::new().append(true).open(file);
        let _ = added.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
    }
    Ok(())
}

/// Judges an attempt; nothing is recorded.
pub fn judge(what: &str, target: &Target<'_>) -> Option<Finding> {
    // A host that is not named asks nobody.
    if matches!(target, Target::Name { host: [], port: None }) {
        return None;
    }
    LAID.judge(what, target)
}

/// Names of this machine are looked up in a file of it, whatever they are for: binding to `localhost` is nobody's business.
pub fn is_hidden_look_up_refused(target: &Target<'_>) -> bool {
    LAID.judge("look up", target).is_some() && !MACHINE.decide(target).is_allowed()
}

pub fn remember(name: &[u8], address: IpAddr) {
    LAID.remember(name, address);
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

/// Records a finding; forked children and started programs hand it to where it belongs.
pub fn note(found: &Finding) {
    if found.is_inherited != 0 {
        return tell_starter(found);
    }
    // SAFETY: no preconditions.
    if unsafe { libc::getpid() } == OWNER.load(Ordering::Acquire) {
        LAID.note(found);
        return;
    }
    let extras = extras();
    if let Some(spool) = extras.iter().rev().find_map(|extra| extra.spool.as_deref()) {
        append(spool, line(found, found.site.as_str(), "forked").as_bytes());
    }
}

/// The floor of the program that started this one refused: it is told there, once.
fn tell_starter(found: &Finding) {
    let own = (found.kind, found.port, found.subject.as_str().to_owned());
    let mut told = TOLD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if told.len() == TOLD_MAX || told.contains(&own) {
        return;
    }
    told.push(own);
    drop(told);
    let extras = extras();
    let Some(spool) = extras.iter().rev().filter(|extra| extra.is_inherited).find_map(|extra| extra.spool.as_deref())
    else {
        return;
    };
    let process = fork::owner();
    let program = task::name(process);
    let site = match found.site.as_str() {
        "" => format!("{} (process {process})", program.as_str()),
        site => format!("{site} ({}, process {process})", program.as_str()),
    };
    append(spool, line(found, &site, "started").as_bytes());
}

/// One line: kind, port, count, subject, message, site, and what kind of process it comes from, separated by tabs.
fn line(found: &Finding, site: &str, from: &str) -> String {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let mut line = format!("{}\t{}\t{}", found.kind, found.port, found.count);
    for text in [found.subject.as_str(), found.message.as_str(), site] {
        let _ = write!(line, "\t{}", plain(text));
    }
    let _ = writeln!(line, "\t{from}");
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
    LAID.pending()
}

pub fn take() -> Option<Finding> {
    LAID.take()
}

/// Both locks.
#[allow(dead_code, reason = "held, not read")]
pub struct Locks(std::sync::MutexGuard<'static, Vec<Extra>>, Held<'static>);

/// Holds the locks, so that a fork does not copy them half-way.
pub fn lock() -> Locks {
    Locks(extras(), LAID.hold())
}
