//! The one engine of this process: opened once, and its functions as safe ones. The only unsafe file of this crate.
//!
//! The library travels inside this one, as bytes. It becomes a file in memory, which children of a sandbox can open as well
//! (`/proc/<this process>/fd/<number>`), so nothing is left on disk, and nothing on disk has to be trusted. An engine that is
//! here already (a child of a sandbox has it preloaded; Python may have brought it) is used as it is.
//!
//! Attaching happens before `main`: some crates ask `dlsym` once for a function of libc and keep the address, for example
//! `getrandom`; from then on they are answered with a hook. A hook leads on to the real function at the cost of one atomic load
//! while no sandbox is entered.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void, CStr};
use hermetic_abi::{
    status, Api, Config, Finding as RawFinding, Host, Jump as RawJump, Outcome, Slice, Text, ABI_VERSION, SYMBOL,
};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::OnceLock;

static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libhermetic.so"));

/// The library's descriptor stays away from the small numbers that programs like to know.
const FD_MIN: c_int = 400;

static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();

/// The engine's functions. Copies are free.
#[derive(Clone, Copy)]
pub struct Engine(&'static Api);

/// The attached engine, or why there is none.
pub fn api() -> Result<Engine, &'static str> {
    ENGINE.get_or_init(open).as_ref().copied().map_err(String::as_str)
}

/// Runs when the program starts.
#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn() = attach_early;

extern "C" fn attach_early() {
    // Whoever enters a sandbox is told what went wrong.
    let _ = api();
}

fn open() -> Result<Engine, String> {
    let engine = match find(SYMBOL) {
        Some(address) => handshake(address, "the engine that this process already has")?,
        None => load()?,
    };
    engine.attach()?;
    Ok(engine)
}

fn load() -> Result<Engine, String> {
    let path = memory_file().map_err(|error| format!("the engine has no memory to lie in: memfd_create: {error}"))?;
    let text = CString::new(path.as_str()).map_err(|error| error.to_string())?;
    // SAFETY: `text` is NUL-terminated; the library's initialisers are our own and touch nothing of the program.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        return Err(format!("cannot open the engine at {path}: {}", last_dl_error()));
    }
    // SAFETY: the handle is open and stays open for the life of the process.
    let address = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
    if address.is_null() {
        return Err("the library inside of this crate is not Hermetic's engine".to_owned());
    }
    handshake(address, "the engine inside of this crate")
}

/// The library as a file that has no name on disk and goes with this process.
fn memory_file() -> io::Result<String> {
    // SAFETY: a NUL-terminated name and plain flags.
    let fd = unsafe { libc::memfd_create(c"libhermetic.so".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor of ours, and plain numbers.
    let moved = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FD_MIN) };
    // SAFETY: just made, and nobody else's; closed where it has a twin now.
    let first = unsafe { File::from_raw_fd(fd) };
    // SAFETY: as above.
    let mut file = if moved < 0 { first } else { unsafe { File::from_raw_fd(moved) } };
    file.write_all(LIBRARY)?;
    // It stays open: children find the library through it.
    Ok(format!("/proc/{}/fd/{}", std::process::id(), file.into_raw_fd()))
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is NUL-terminated; the call only searches symbol tables.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn last_dl_error() -> String {
    // SAFETY: returns a thread's last error text or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown reason".to_owned();
    }
    text_of(text)
}

fn text_of(text: *const c_char) -> String {
    // SAFETY: callers pass NUL-terminated text that lives long enough to be copied.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn handshake(address: *mut c_void, origin: &str) -> Result<Engine, String> {
    // SAFETY: the symbol is a function without arguments in every version of the ABI.
    let table = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> *const Api>(address) };
    let api = table();
    if api.is_null() {
        return Err(format!("{origin} gave no function table"));
    }
    // SAFETY: `abi_version` is the first field of every version of the table.
    let found = unsafe { api.cast::<u32>().read() };
    if found != ABI_VERSION {
        return Err(format!(
            "{origin} speaks version {found} of the engine interface, this crate needs {ABI_VERSION}; use matching releases \
             of everything that brings Hermetic into this process"
        ));
    }
    // SAFETY: the version matches, so the table has the layout that this crate was compiled with.
    let api: &'static Api = unsafe { &*api };
    let (release, own) = (text_of(api.version), env!("CARGO_PKG_VERSION"));
    if release != own {
        return Err(format!("{origin} is release {release}, this crate is {own}; use matching releases"));
    }
    Ok(Engine(api))
}

/// What Rust lends to the engine: no places of code, and a way out of waits that nobody will end.
static HOST: HostTable = HostTable(Host {
    size: size_of::<Host>() as u32,
    image: core::ptr::null(),
    locks_read_clock: 0,
    is_running: None,
    is_known: None,
    place: None,
    describe: None,
    is_importing: None,
    interrupt: Some(interrupt),
});

struct HostTable(Host);
// SAFETY: a table of function pointers that is never written.
unsafe impl Sync for HostTable {}

unsafe extern "C" fn interrupt(kind: u32) {
    crate::interrupt::interrupt(kind);
}

/// Functions that cannot harm: their pointers are to values of this file's own frames, for the time of the call.
impl Engine {
    fn attach(self) -> Result<(), String> {
        // An interpreter has an adapter of its own, which knows how to raise errors.
        let host = if find(c"Py_IsInitialized").is_some() { core::ptr::null() } else { &raw const HOST.0 };
        let mut error = Text::new();
        // SAFETY: the host is null or static, the error outlives the call.
        let code = unsafe { (self.0.attach)(host, &raw mut error) };
        if code < 0 {
            return Err(format!("the engine cannot attach to this process: {}", error.as_str()));
        }
        Ok(())
    }

    /// Enters a sandbox; the slices of the configuration live as long as the call by their lifetimes in the caller.
    pub fn enter(self, config: &Config) -> Result<i64, (i32, String)> {
        let mut error = Text::new();
        // SAFETY: the configuration borrows from the caller, which waits for the answer.
        let answer = unsafe { (self.0.enter)(config, &raw mut error) };
        if answer > 0 {
            return Ok(answer);
        }
        Err((answer as i32, error.as_str().to_owned()))
    }

    /// Leaves the innermost sandbox. None: it is not that one.
    pub fn leave(self, id: i64) -> Option<Outcome> {
        let mut outcome = Outcome::default();
        // SAFETY: the outcome is writable.
        let code = unsafe { (self.0.leave)(id, &raw mut outcome) };
        (code == status::OK).then_some(outcome)
    }

    pub fn is_inside(self) -> bool {
        // SAFETY: no arguments.
        unsafe { (self.0.is_inside)() == 1 }
    }

    pub fn clock_now(self, id: i64, clock: i32) -> i64 {
        // SAFETY: plain values.
        unsafe { (self.0.clock_now)(id, clock) }
    }

    pub fn clock_advance(self, id: i64, ns: i64) -> bool {
        // SAFETY: plain values.
        unsafe { (self.0.clock_advance)(id, ns) == status::OK }
    }

    pub fn clock_set(self, id: i64, ns: i64) -> bool {
        // SAFETY: plain values.
        unsafe { (self.0.clock_set)(id, ns) == status::OK }
    }

    pub fn real_clock(self, clock: i32) -> i64 {
        // SAFETY: plain values.
        unsafe { (self.0.real_clock)(clock) }
    }

    pub fn real_sleep(self, ns: i64) {
        // SAFETY: plain values.
        unsafe { (self.0.real_sleep)(ns) }
    }

    pub fn real_entropy(self, buffer: &mut [u8]) -> bool {
        // SAFETY: the buffer is writable for its length.
        unsafe { (self.0.real_entropy)(buffer.as_mut_ptr(), buffer.len()) == status::OK }
    }

    pub fn real_begin(self) {
        // SAFETY: no arguments.
        unsafe { (self.0.real_begin)() }
    }

    pub fn real_end(self) {
        // SAFETY: no arguments.
        unsafe { (self.0.real_end)() }
    }

    pub fn allow(self, id: i64, entry: &str) -> Result<(), String> {
        let mut error = Text::new();
        // SAFETY: the entry and the error outlive the call.
        let code = unsafe { (self.0.allow)(id, Slice::of(entry.as_bytes()), &raw mut error) };
        if code == status::OK {
            return Ok(());
        }
        Err(error.as_str().to_owned())
    }

    /// The finding number `index` of a sandbox, also after it was left, until the next one is entered.
    pub fn finding(self, id: i64, index: usize) -> Option<RawFinding> {
        let mut found = RawFinding::BLANK;
        // SAFETY: the finding is writable.
        let code = unsafe { (self.0.finding)(id, index as u32, &raw mut found) };
        (code == status::OK).then_some(found)
    }

    /// As [`Engine::finding`], of the moves of time.
    pub fn jump(self, id: i64, index: usize) -> Option<RawJump> {
        let mut jump = RawJump::BLANK;
        // SAFETY: the jump is writable.
        let code = unsafe { (self.0.jump)(id, index as u32, &raw mut jump) };
        (code == status::OK).then_some(jump)
    }

    /// Text of the finding that interrupted the calling thread last.
    pub fn last_interrupt(self) -> Text {
        let mut text = Text::new();
        // SAFETY: the text is writable.
        unsafe { (self.0.last_interrupt)(&raw mut text) };
        text
    }

    /// Calls `use_journal` with the raw journal of the sandbox that was left last.
    pub fn with_journal<R>(self, id: i64, use_journal: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let mut raw = Slice::ABSENT;
        // SAFETY: the slice is writable.
        let code = unsafe { (self.0.journal)(id, &raw mut raw) };
        if code != status::OK || raw.data.is_null() {
            return None;
        }
        // SAFETY: the engine keeps these bytes mapped until the next sandbox is entered, which the caller's turn rules out.
        Some(use_journal(unsafe { core::slice::from_raw_parts(raw.data, raw.len) }))
    }
}

/// Writes to standard error past everything that captures it, and allocates nothing.
pub fn write_error(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the buffer is readable for its length.
        let written = unsafe { libc::write(2, rest.as_ptr().cast(), rest.len()) };
        let Ok(written @ 1..) = usize::try_from(written) else { return };
        rest = &rest[written..];
    }
}

/// Locks a file for this process, as long as it is open. False where another process holds it.
pub fn try_lock_file(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: an open descriptor and plain flags.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// The same, but waits for the other process.
pub fn lock_file(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: an open descriptor and plain flags.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) == 0 }
}

/// Calls `work` when the process ends in an orderly way.
pub fn at_exit(work: extern "C" fn()) {
    // SAFETY: a function that lives as long as the program.
    let _: c_int = unsafe { libc::atexit(work) };
}
