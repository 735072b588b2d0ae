//! The other side of [`crate::views`]: a long-lived server that was started with this library reads the clocks of its clients.
//!
//! A process that was forked for a connection shows its wall clock as the process at the other end sees it: that of the
//! sandbox which the client is in, or of the nearest of its parents that is in one. Everything else stays real: other clocks,
//! and waits. A server computes its waits from readings, though, and looks at the clock again afterwards. So time that it has
//! really waited, or that a timer of its own has really run, is added to what it reads, until the client's next request.
//!
//! The server is a process of one thread per connection; signal handlers may come here too.

use crate::front::{self, Front};
use crate::views::{View, LEVEL_BITS};
use crate::{attach, fork, guard, threads};
use core::ffi::{c_int, CStr};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::sync::atomic::{fence, AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU32, Ordering};
use hermetic_engine::thread::LEVELS_MAX;
use hermetic_sys::{clock as kernel, task};
use libc::{clockid_t, itimerval};

/// The folder of views; set by whoever starts the server.
const FOLDER: &CStr = c"HERMETIC_FOLLOW";
/// The file in it that says that this server follows.
const MARK: &str = "server";

/// Processes of a client's family that are asked, and how far up its parents are looked for.
const KIN_MAX: usize = 4;
const GENERATIONS_MAX: usize = 32;

static IS_FOLLOWER: AtomicBool = AtomicBool::new(false);
/// The folder, as C text that lives for ever.
static PLACE: AtomicPtr<core::ffi::c_char> = AtomicPtr::new(core::ptr::null_mut());
/// The connection that was accepted last, until the next fork: the forked process serves it.
static ACCEPTED: AtomicI32 = AtomicI32::new(-1);
/// The process at the other end; 0 in processes that serve nobody.
static CLIENT: AtomicI32 = AtomicI32::new(0);

static KIN: [Kin; KIN_MAX] = [const { Kin::nobody() }; KIN_MAX];
static KIN_COUNT: AtomicU32 = AtomicU32::new(0);

/// Readings are not below this: what they were when a wait began, and what was really waited since.
static LEAST_NS: AtomicI64 = AtomicI64::new(i64::MIN);
/// The kernel's monotonic time at which the timer goes off, and what the clock shall show then; 0 for none.
static TIMER_REAL_NS: AtomicI64 = AtomicI64::new(0);
static TIMER_NS: AtomicI64 = AtomicI64::new(0);

/// A client, or a parent of it, that shows its clocks.
struct Kin {
    process: AtomicI32,
    view: AtomicPtr<View>,
    fronts: [AtomicPtr<Front>; LEVELS_MAX],
}

impl Kin {
    const fn nobody() -> Kin {
        Kin {
            process: AtomicI32::new(0),
            view: AtomicPtr::new(core::ptr::null_mut()),
            fronts: [const { AtomicPtr::new(core::ptr::null_mut()) }; LEVELS_MAX],
        }
    }

    /// What its wall clock shows; none where it is in no sandbox.
    fn wall(&self) -> Option<i64> {
        // SAFETY: null, or a map that is never unmapped.
        let view = unsafe { self.view.load(Ordering::Acquire).as_ref() }?;
        loop {
            let sight = view.sight.load(Ordering::Acquire);
            let level = (sight & ((1 << LEVEL_BITS) - 1)).checked_sub(1)?;
            let real = || kernel::read(libc::CLOCK_REALTIME);
            let ns = self.front(level as usize).and_then(|front| front.wall(real)).unwrap_or_else(real);
            fence(Ordering::Acquire);
            if view.sight.load(Ordering::Relaxed) == sight {
                return Some(ns);
            }
        }
    }

    fn front(&self, level: usize) -> Option<&'static Front> {
        let place = self.fronts.get(level)?;
        if place.load(Ordering::Acquire).is_null() {
            let mut path = Path::in_folder()?;
            write!(path, "{}.{level}", self.process.load(Ordering::Relaxed)).ok()?;
            place.store(map::<Front>(&path)?, Ordering::Release);
        }
        // SAFETY: a map that is never unmapped, just made or known.
        let front = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        (front.version.load(Ordering::Acquire) == front::VERSION).then_some(front)
    }
}

/// A path on the stack. Its last byte stays 0.
struct Path {
    bytes: [u8; Path::CAPACITY],
    len: usize,
}

impl Path {
    const CAPACITY: usize = 512;

    fn in_folder() -> Option<Path> {
        let folder = PLACE.load(Ordering::Acquire);
        if folder.is_null() {
            return None;
        }
        let mut path = Path { bytes: [0; Path::CAPACITY], len: 0 };
        // SAFETY: C text that lives for ever.
        let folder = unsafe { CStr::from_ptr(folder) };
        write!(path, "{}/", folder.to_str().ok()?).ok()?;
        Some(path)
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let place = self.bytes[..Path::CAPACITY - 1].get_mut(self.len..end).ok_or(core::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Maps the first page of a file for reading, for ever.
fn map<T>(path: &Path) -> Option<*mut T> {
    // SAFETY: the path ends with a NUL.
    let fd = unsafe { libc::open(path.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: maps a file at an address of the kernel's choice.
    let data = unsafe { libc::mmap(core::ptr::null_mut(), front::LEN, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    // SAFETY: our descriptor; the map keeps the memory.
    unsafe { libc::close(fd) };
    (data != libc::MAP_FAILED).then_some(data.cast())
}

/// Runs when the library is loaded: makes this process a follower, if it was started as one.
pub fn construct() {
    // SAFETY: nobody changes the environment this early.
    let folder = unsafe { libc::getenv(FOLDER.as_ptr()) };
    if folder.is_null() {
        return;
    }
    // SAFETY: C text, which is copied.
    let folder = unsafe { CStr::from_ptr(folder) }.to_owned();
    // Programs that the server starts are none of this.
    for name in [FOLDER, c"LD_PRELOAD"] {
        // SAFETY: as above.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
    guard::real_begin();
    fork::prepare();
    let is_attached = attach::attach().is_ok() && threads::current().is_some();
    guard::real_end();
    PLACE.store(folder.into_raw(), Ordering::Release);
    if is_attached && leave_mark() {
        IS_FOLLOWER.store(true, Ordering::Release);
    }
}

fn leave_mark() -> bool {
    let Some(mut path) = Path::in_folder() else { return false };
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    if path.write_str(MARK).is_err() {
        return false;
    }
    // SAFETY: the path ends with a NUL.
    let fd = unsafe { libc::open(path.bytes.as_ptr().cast(), flags, 0o600) };
    // SAFETY: our descriptor, or none.
    unsafe { libc::close(fd) };
    fd >= 0
}

#[inline(always)]
fn is_following() -> bool {
    IS_FOLLOWER.load(Ordering::Relaxed) && CLIENT.load(Ordering::Relaxed) != 0
}

/// A connection was accepted, if `fd` is one.
#[inline]
pub fn note_accepted(fd: c_int) {
    if fd >= 0 && IS_FOLLOWER.load(Ordering::Relaxed) {
        ACCEPTED.store(fd, Ordering::Relaxed);
    }
}

/// In a forked child: it serves whoever was accepted just before.
pub fn become_forked() {
    if !IS_FOLLOWER.load(Ordering::Relaxed) {
        return;
    }
    let client = peer(ACCEPTED.swap(-1, Ordering::Relaxed));
    CLIENT.store(client, Ordering::Relaxed);
    if client != 0 {
        look_for_kin(client);
    }
}

/// After a fork, in the server: the connection is the child's.
pub fn forget_accepted() {
    ACCEPTED.store(-1, Ordering::Relaxed);
}

/// The process at the other end of a unix socket; 0 for anything else.
fn peer(fd: c_int) -> i32 {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer is as long as `len` says.
    let error =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, peer.as_mut_ptr().cast(), &mut len) };
    if error != 0 {
        return 0;
    }
    // SAFETY: filled, and zero before.
    unsafe { peer.assume_init() }.pid
}

/// Finds who of the client and its parents shows clocks, the nearest first.
fn look_for_kin(client: i32) {
    let mut count = 0;
    let mut process = client;
    for _ in 0..GENERATIONS_MAX {
        let Some(origin) = task::origin(process) else { break };
        if count < KIN_MAX {
            count += usize::from(meet(&KIN[count], process, origin.started));
        }
        process = origin.parent;
        if process <= 0 {
            break;
        }
    }
    KIN_COUNT.store(count as u32, Ordering::Release);
}

fn meet(kin: &Kin, process: i32, started: u64) -> bool {
    let view = || {
        let mut path = Path::in_folder()?;
        write!(path, "{process}").ok()?;
        map::<View>(&path)
    };
    let Some(place) = view() else { return false };
    // SAFETY: a map that is never unmapped.
    let view = unsafe { &*place };
    let is_its_own =
        view.version.load(Ordering::Acquire) == front::VERSION && view.started.load(Ordering::Relaxed) == started;
    if is_its_own {
        kin.process.store(process, Ordering::Relaxed);
        kin.fronts.iter().for_each(|front| front.store(core::ptr::null_mut(), Ordering::Relaxed));
        kin.view.store(place, Ordering::Release);
    }
    is_its_own
}

/// What a clock shows here; none where it is real.
#[cold]
pub fn read(id: clockid_t) -> Option<i64> {
    let is_wall = matches!(id, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE);
    (is_wall && is_following()).then(reading)
}

/// Whether [`read`] has anything to say.
#[inline(always)]
pub fn is_any() -> bool {
    IS_FOLLOWER.load(Ordering::Relaxed)
}

fn reading() -> i64 {
    let due_ns = TIMER_REAL_NS.load(Ordering::Relaxed);
    if due_ns != 0 && kernel::read(libc::CLOCK_MONOTONIC) >= due_ns {
        TIMER_REAL_NS.store(0, Ordering::Relaxed);
        LEAST_NS.fetch_max(TIMER_NS.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let count = KIN_COUNT.load(Ordering::Acquire) as usize;
    let ns = KIN[..count].iter().find_map(Kin::wall).unwrap_or_else(|| kernel::read(libc::CLOCK_REALTIME));
    ns.max(LEAST_NS.load(Ordering::Relaxed))
}

/// Makes a real wait of at most `ns`. What it took is seen on the clock afterwards.
pub fn waiting<R>(ns: Option<i64>, wait: impl FnOnce() -> R) -> R {
    let Some(ns) = ns.filter(|&ns| ns > 0 && is_following()) else { return wait() };
    let (begin_ns, real_ns) = (reading(), kernel::read(libc::CLOCK_MONOTONIC));
    let result = wait();
    let took_ns = (kernel::read(libc::CLOCK_MONOTONIC) - real_ns).clamp(0, ns);
    LEAST_NS.fetch_max(begin_ns.saturating_add(took_ns), Ordering::Relaxed);
    result
}

/// A timer of the process is being set.
pub fn set_timer(which: c_int, timer: &itimerval) {
    if which != libc::ITIMER_REAL || !is_following() {
        return;
    }
    let value = timer.it_value;
    let span_ns = value.tv_sec.saturating_mul(1_000_000_000).saturating_add(value.tv_usec.saturating_mul(1000));
    let now_ns = reading();
    TIMER_NS.store(now_ns.saturating_add(span_ns), Ordering::Relaxed);
    let due_ns = if span_ns == 0 { 0 } else { kernel::read(libc::CLOCK_MONOTONIC).saturating_add(span_ns) };
    TIMER_REAL_NS.store(due_ns, Ordering::Relaxed);
}

/// Something was received: a request of the client, which is shown its own time again.
#[inline]
pub fn received(count: isize) {
    if count > 0 && is_following() {
        begin_request();
    }
}

#[cold]
fn begin_request() {
    LEAST_NS.store(i64::MIN, Ordering::Relaxed);
    let client = CLIENT.load(Ordering::Relaxed);
    // It may have begun to show its clocks after it connected.
    if KIN_COUNT.load(Ordering::Relaxed) == 0 || KIN[0].process.load(Ordering::Relaxed) != client {
        look_for_kin(client);
    }
}
