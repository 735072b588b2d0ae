//! Children take part: what a process hands to those it starts, and how a started one enters.
//!
//! A forked child has everything in its memory. One that execs another program gets variables in its environment: this library
//! to preload; the place of the clock page (a descriptor of the process that entered the sandbox, reached through `/proc`), if it
//! is to take part in a sandbox; the files of the floors, if it lies on any. The library's constructor finds them, attaches, lies
//! down, and enters a sandbox on the page's clocks. Nothing is written to the parent's own environment, and nothing here allocates:
//! the caller may be a child of vfork, which borrows its parent's memory.

use crate::guard::{self, Call};
use crate::host::Registered;
use crate::page::{self, Page, PAGE_VERSION};
use crate::{api, attach, children, condition, floor, follower, fork, host, host_lock, parking, semaphores, threads};
use core::ffi::{c_char, CStr};
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use hermetic_abi::flag;
use hermetic_engine::sandbox::{Mode, Settings};
use hermetic_engine::Sandbox;
use hermetic_model::stream::Pedigree;
use hermetic_sys::clock as kernel;
use std::sync::OnceLock;

/// Where the clock page is and who the child is: `version:process:descriptor:generation:pedigree`.
const CHILD: &str = "HERMETIC_CHILD";
const PRELOAD: &str = "LD_PRELOAD";
/// Python reads it before our constructor could set it.
const HASH_SEED: &str = "PYTHONHASHSEED";

/// Longest texts that are handed on; a sandbox with longer ones keeps its children out.
const SEED_LEN_MAX: usize = 256;
const ALLOW_LEN_MAX: usize = 8192;

/// What a child needs to know beyond the clocks. Lies in the page; written before the page's generation is.
#[repr(C)]
pub struct Inheritance {
    /// The process that entered the sandbox, and its descriptor of the page: it lives for as long as the sandbox.
    owner: AtomicI32,
    fd: AtomicI32,
    flags: AtomicU32,
    spin_limit: AtomicU64,
    seed: Text<SEED_LEN_MAX>,
    allow: Text<ALLOW_LEN_MAX>,
    /// 0: children are kept out.
    is_open: AtomicU32,
}

/// A text in shared memory, as words, so that a torn read is a wrong text and not undefined behaviour.
#[repr(C)]
struct Text<const LEN: usize> {
    len: AtomicU32,
    bytes: [core::sync::atomic::AtomicU8; LEN],
}

impl<const LEN: usize> Text<LEN> {
    fn write(&self, text: &[u8]) -> bool {
        if text.len() > LEN {
            return false;
        }
        for (place, &byte) in self.bytes.iter().zip(text) {
            place.store(byte, Ordering::Relaxed);
        }
        self.len.store(text.len() as u32, Ordering::Relaxed);
        true
    }

    fn read(&self) -> Vec<u8> {
        let len = (self.len.load(Ordering::Relaxed) as usize).min(LEN);
        self.bytes[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect()
    }
}

/// Writes down what children of a sandbox get. Recordings and replays keep them out: their children are real.
pub fn hand_on(page: &Page, fd: i32, sandbox: &Sandbox, settings: &Settings<'_>) {
    let kept = &page.inheritance;
    let is_virtual =
        [sandbox.clock_mode(), sandbox.entropy_mode()].iter().all(|mode| matches!(mode, Mode::Virtual | Mode::Off));
    let is_wanted = settings.flags & flag::INHERIT != 0 && is_virtual;
    let is_open = is_wanted && kept.seed.write(settings.seed) && kept.allow.write(settings.allow.as_bytes());
    if is_open {
        kept.owner.store(fork::owner(), Ordering::Relaxed);
        kept.fd.store(fd, Ordering::Relaxed);
        kept.flags.store(settings.flags, Ordering::Relaxed);
        kept.spin_limit.store(settings.spin_limit, Ordering::Relaxed);
    }
    kept.is_open.store(u32::from(is_open), Ordering::Release);
}

/// Variables of a started program, in memory of the caller's frame.
pub struct Variables {
    pointers: [*const c_char; Variables::COUNT_MAX],
    text: [u8; Variables::TEXT_MAX],
    len: usize,
}

impl Write for Variables {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        self.text.get_mut(self.len..end).ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl Variables {
    /// Programs with a larger environment stay outside.
    const COUNT_MAX: usize = 2048;
    const TEXT_MAX: usize = 8192;

    pub fn new() -> Variables {
        Variables { pointers: [core::ptr::null(); Variables::COUNT_MAX], text: [0; Variables::TEXT_MAX], len: 0 }
    }

    /// The given environment with ours in it, for a child that the calling thread starts; or the given one where there is no
    /// floor, and the call is no part of a sandbox that children take part in.
    ///
    /// # Safety
    /// `given` is null or an environment: pointers to C strings, ended by null.
    pub unsafe fn for_child(&mut self, given: *const *const c_char) -> *const *const c_char {
        children::note_start();
        let (child, floor) = (describe_child(), floor::variable());
        if child.is_none() && floor.is_none() {
            return given;
        }
        // SAFETY: the caller's promise.
        match unsafe { self.fill(given, child.as_ref(), floor) } {
            Some(()) => self.pointers.as_ptr(),
            None => given,
        }
    }

    unsafe fn fill(
        &mut self,
        given: *const *const c_char,
        child: Option<&(Child, u32)>,
        floor: Option<&'static CStr>,
    ) -> Option<()> {
        let library = library()?;
        let mut count = 0;
        let mut preload: &[u8] = b"";
        let mut has_hash_seed = false;
        let mut next = given;
        while !next.is_null() {
            // SAFETY: the caller's promise.
            let variable = unsafe { *next };
            if variable.is_null() {
                break;
            }
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(variable) }.to_bytes();
            if let Some(value) = value_of(text, PRELOAD) {
                preload = value;
            } else if value_of(text, CHILD).is_none() && value_of(text, floor::NAME).is_none() {
                has_hash_seed |= value_of(text, HASH_SEED).is_some();
                *self.pointers.get_mut(count)? = variable;
                count += 1;
            }
            next = next.wrapping_add(1);
        }
        let preload = core::str::from_utf8(preload).ok()?;
        let separator = if preload.is_empty() { "" } else { ":" };
        let others = without(preload, library);
        let start = self.len;
        write!(self, "{PRELOAD}={library}{}{others}\0", if others.is_empty() { "" } else { separator }).ok()?;
        self.add(&mut count, start)?;
        if let Some(floor) = floor {
            *self.pointers.get_mut(count)? = floor.as_ptr();
            count += 1;
        }
        if let Some((Child { process, fd, generation, pedigree }, hash_seed)) = child {
            let start = self.len;
            write!(self, "{CHILD}={PAGE_VERSION}:{process}:{fd}:{generation}:{pedigree}\0").ok()?;
            self.add(&mut count, start)?;
            if !has_hash_seed {
                let start = self.len;
                write!(self, "{HASH_SEED}={hash_seed}\0").ok()?;
                self.add(&mut count, start)?;
            }
        }
        *self.pointers.get_mut(count)? = core::ptr::null();
        Some(())
    }

    fn add(&mut self, count: &mut usize, start: usize) -> Option<()> {
        let text = self.text.as_ptr().wrapping_add(start).cast();
        *self.pointers.get_mut(*count)? = text;
        *count += 1;
        Some(())
    }
}

/// The libraries that were to be preloaded anyway, if ours comes first among them already.
fn without<'a>(preload: &'a str, library: &str) -> &'a str {
    match preload.strip_prefix(library) {
        Some(rest) => rest.trim_start_matches(':'),
        None => preload,
    }
}

fn value_of<'a>(variable: &'a [u8], name: &str) -> Option<&'a [u8]> {
    variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// What a child is told about itself.
struct Child {
    process: i32,
    fd: i32,
    generation: u64,
    pedigree: u64,
}

fn describe_child() -> Option<(Child, u32)> {
    let mut call = Call::enter()?;
    let page = api::page_of(call.sandbox.depth())?;
    if page.inheritance.is_open.load(Ordering::Acquire) == 0 {
        return None;
    }
    let generation = page.generation.load(Ordering::Acquire);
    let (sandbox, thread) = call.parts();
    let pedigree = sandbox.child_pedigree(thread, &Registered).0;
    let hash_seed = sandbox.hash_seed();
    let process = page.inheritance.owner.load(Ordering::Relaxed);
    let fd = page.inheritance.fd.load(Ordering::Relaxed);
    Some((Child { process, fd, generation, pedigree }, hash_seed))
}

static LIBRARY: OnceLock<Option<String>> = OnceLock::new();

/// The path of this library, once it was learned.
fn library() -> Option<&'static str> {
    LIBRARY.get()?.as_deref()
}

/// Finds out where this library lies. Not for hooks.
pub fn learn_path() {
    LIBRARY.get_or_init(|| hermetic_sys::symbol::object_path(learn_path as *const () as usize));
}

/// Runs when the library is loaded: enters, if the parent has handed something on.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    follower::construct();
    lie_down();
    // SAFETY: nobody changes the environment this early.
    let value = unsafe { libc::getenv(c"HERMETIC_CHILD".as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: a C string, as above.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    if let Some(child) = core::str::from_utf8(value).ok().and_then(parse) {
        guard::real_begin();
        // Where the sandbox is over, or its owner is, the world is real: no error of this program.
        let _ = enter(&child);
        guard::real_end();
    }
}

/// Lays the floors of the program that started this one.
fn lie_down() {
    // SAFETY: nobody changes the environment this early.
    let paths = unsafe { libc::getenv(floor::NAME_C.as_ptr()) };
    if paths.is_null() {
        return;
    }
    // SAFETY: a C string, as above.
    let paths = unsafe { CStr::from_ptr(paths) }.to_string_lossy();
    guard::real_begin();
    learn_path();
    if !is_own_program() {
        fork::prepare();
        // Without hooks there is no floor; programs that cannot be entered are listed in the documentation.
        let _ = attach::attach();
        floor::inherit(&paths);
    }
    guard::real_end();
}

/// The supervisor of PostgreSQL clusters lies beside this library. It is no part of the test, and starts quicker alone.
fn is_own_program() -> bool {
    let program = std::fs::read_link("/proc/self/exe").ok();
    let own = library().map(|library| std::path::Path::new(library).with_file_name("hermetic-pg"));
    program.is_some() && program == own
}

fn parse(text: &str) -> Option<Child> {
    let mut parts = text.split(':');
    let version: u32 = parts.next()?.parse().ok()?;
    let child = Child {
        process: parts.next()?.parse().ok()?,
        fd: parts.next()?.parse().ok()?,
        generation: parts.next()?.parse().ok()?,
        pedigree: parts.next()?.parse().ok()?,
    };
    (version == PAGE_VERSION && parts.next().is_none()).then_some(child)
}

fn enter(child: &Child) -> Option<()> {
    let page = page::open_of(child.process, child.fd)?;
    if page.generation.load(Ordering::Acquire) != child.generation {
        return None;
    }
    condition::learn();
    semaphores::learn();
    learn_path();
    fork::prepare();
    host::discover();
    attach::attach().ok()?;
    host_lock::learn();
    let kept = &page.inheritance;
    let (seed, allow) = (kept.seed.read(), kept.allow.read());
    let settings = Settings {
        flags: kept.flags.load(Ordering::Relaxed) | flag::AUTOMATIC,
        seed: &seed,
        now_ns: 0,
        monotonic_ns: 0,
        real_coarse_ns: kernel::read(libc::CLOCK_REALTIME_COARSE),
        inherits: true,
        tick_ps: 0,
        spin_limit: kept.spin_limit.load(Ordering::Relaxed),
        allow: core::str::from_utf8(&allow).ok()?,
    };
    // A forked child that execs is in the table already, as what it was before.
    parking::forget_former(page);
    let process = page.lock().take_process()?;
    let record = threads::current()?;
    // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
    let thread = unsafe { &mut *record };
    let sandbox = api::enter_inherited(page, &settings, thread)?;
    sandbox.become_pedigree(thread, Pedigree(child.pedigree));
    parking::enter_inherited(page, process, thread);
    Some(())
}

/// Runs when the program ends in an orderly way: the others need not find out that it has.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destruct;

extern "C" fn destruct() {
    parking::leave_process();
}
