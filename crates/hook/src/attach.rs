//! Getting in: finding the real functions, rewriting every object's slots, and again after objects were added.

use crate::host;
use crate::table::{Caller, Hook};
use hermetic_sys::objects::{self, Object, Patch};
use hermetic_sys::symbol;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Oldest glibc on which the hooks were made to work.
const GLIBC_MIN: (u32, u32) = (2, 31);

/// What `doctor` and the tests want to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub objects: u32,
    pub slots: u32,
    pub failed: u32,
}

struct Rows {
    by_name: HashMap<&'static [u8], Vec<&'static Hook>>,
    /// For each first byte the lengths (up to 63) that some name has: most names of an object are told apart by this.
    lengths: [u64; 256],
}

#[derive(Default)]
pub struct State {
    generation: (u64, u64),
    /// Objects done, by address of load.
    done: HashSet<usize>,
    report: Report,
    image: usize,
}

static ROWS: OnceLock<Rows> = OnceLock::new();
static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Attaches to this process, or looks again if it is attached already. The error is for people.
pub fn attach() -> Result<(), String> {
    match symbol::glibc_version() {
        Some(version) if version >= GLIBC_MIN => {}
        Some((major, minor)) => {
            return Err(format!("this process runs glibc {major}.{minor}; needed is 2.31 or newer"))
        }
        None => return Err("this process does not run glibc; other C libraries are not supported".to_owned()),
    }
    let error = |error: std::io::Error| format!("the machine refused memory for thread records: {error}");
    crate::threads::prepare().map_err(error)?;
    ROWS.get_or_init(resolve);
    scan();
    let state = STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match state.as_ref().map(|state| state.report) {
        Some(report) if report.slots > 0 => Ok(()),
        _ => Err("no relocation slots were found to rewrite; a statically linked program cannot be entered".to_owned()),
    }
}

/// Looks at objects that were loaded since the last look. Cheap when there are none. Does nothing before `attach`.
pub fn scan() {
    let Some(rows) = ROWS.get() else { return };
    let mut guard = STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let state = guard.get_or_insert_with(State::default);
    let generation = objects::generation();
    let image = host::image();
    if generation == state.generation && image == state.image {
        return;
    }
    if generation.1 != state.generation.1 || image != state.image {
        // An object that went away may have made room for another at the same address; a new host changes the rows.
        state.done.clear();
        state.report.objects = 0;
    }
    state.generation = generation;
    state.image = image;
    let ours = symbol::object_base(attach as *const () as usize).unwrap_or(0);
    objects::for_each(|object| {
        if state.done.insert(object.base()) && !is_exempt(object, ours) {
            let (slots, failed) = rewrite(object, rows, image);
            state.report.objects += 1;
            state.report.slots += slots;
            state.report.failed += failed;
        }
    });
}

/// What has been done so far.
pub fn report() -> Report {
    STATE.lock().ok().and_then(|state| state.as_ref().map(|state| state.report)).unwrap_or_default()
}

/// The scan's lock.
#[allow(dead_code, reason = "held, not read")]
pub struct Held(MutexGuard<'static, Option<State>>);

/// Holds the scan's lock, so that a fork does not copy it half-way.
pub fn lock() -> Held {
    Held(STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// The hook for a name, whoever asks.
pub fn hook_of(name: &[u8]) -> Option<&'static Hook> {
    let hooks = ROWS.get()?.by_name.get(name)?;
    hooks.iter().copied().find(|hook| hook.caller == Caller::Anyone)
}

fn resolve() -> Rows {
    let mut rows = Rows { by_name: HashMap::new(), lengths: [0; 256] };
    for hook in crate::libc::tables().flatten() {
        let Some(real) = symbol::global(hook.name) else { continue };
        hook.real.set(real);
        let name = hook.name.to_bytes();
        rows.lengths[usize::from(name[0])] |= 1 << name.len().min(63);
        rows.by_name.entry(name).or_default().push(hook);
    }
    rows
}

fn rewrite(object: &Object, rows: &Rows, image: usize) -> (u32, u32) {
    let is_interpreter = object.contains(image);
    let file = object.path().to_bytes();
    let file = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
    let has_sockets = is_interpreter || file.starts_with(b"_socket.");
    object.rewrite(|name| {
        let first = *name.first()?;
        if rows.lengths[usize::from(first)] & 1 << name.len().min(63) == 0 {
            return None;
        }
        let suits = |hook: &&&Hook| match hook.caller {
            Caller::Anyone => true,
            Caller::Interpreter => is_interpreter,
            Caller::InterpreterSockets => has_sockets,
        };
        let hook = rows.by_name.get(name)?.iter().find(suits)?;
        Some(Patch { real: hook.real.address(), hook: hook.function.0 as usize })
    })
}

/// The C library and the linker call themselves as they are; we call them as they are; the vDSO calls nobody.
fn is_exempt(object: &Object, ours: usize) -> bool {
    let soname = object.soname();
    object.base() == ours
        || soname.starts_with(b"libc.so")
        || soname.starts_with(b"ld-linux")
        || soname.starts_with(b"libpthread.so")
        || soname.starts_with(b"libdl.so")
        || soname.starts_with(b"librt.so")
        || soname.starts_with(b"linux-vdso")
        || soname.starts_with(b"linux-gate")
        // A sanitizer's run time answers the same names and must see the real ones.
        || soname.starts_with(b"libasan")
        || soname.starts_with(b"libtsan")
}
