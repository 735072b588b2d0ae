//! The C ABI of `hermetic_abi::Api`: each function checks its arguments, converts, and asks the engine.

use crate::guard::{self, Call};
use crate::host::{self, Registered};
use crate::page::{self, Page};
use crate::sink::Scratch;
use crate::views::{Level, Views};
use crate::{
    attach, children, condition, floor, fork, glance, host_lock, inherit, jumps, network, openssl, parking, pipes,
    semaphores, threads, timers,
};
use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use hermetic_abi::{flag, status, Api, Config, Finding, FloorConfig, Host, Jump, Outcome, Slice, Text, ABI_VERSION};
use hermetic_engine::floor::FloorSettings;
use hermetic_engine::recorder::BoxedSink;
use hermetic_engine::sandbox::{Journaling, Mode, Settings};
use hermetic_engine::thread::LEVELS_MAX;
use hermetic_engine::{EnterError, Sandbox, Thread};
use hermetic_model::clock::{Clock, MONOTONIC_ORIGIN_NS};
use hermetic_model::stream::Purpose;
use hermetic_policy::Target;
use hermetic_sys::clock as kernel;
use std::sync::{Mutex, MutexGuard};

static API: Api = Api {
    abi_version: ABI_VERSION,
    size: size_of::<Api>() as u32,
    version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast::<c_char>(),
    attach: api_attach,
    enter,
    leave,
    suspend,
    resume,
    clock_now,
    clock_advance,
    clock_set,
    real_clock,
    real_sleep,
    real_entropy,
    real_begin,
    real_end,
    chance_begin,
    chance_end,
    is_inside,
    step,
    offer_turn,
    allow,
    check_address,
    check_host,
    is_network_guarded,
    take_pending_name,
    finding,
    jump,
    last_interrupt,
    journal,
    record_state,
    draw,
    floor_enter,
    floor_leave,
    floor_allow,
    set_home,
    floor_note,
    floor_pending,
    floor_take,
    show_clocks,
    describe,
};

/// The entry point of every front end.
#[unsafe(no_mangle)]
pub extern "C" fn hermetic_abi() -> *const Api {
    &API
}

/// Sandboxes by level, and their pages; made when a level is first used, never freed (H7).
static LEVELS: [AtomicPtr<Sandbox>; LEVELS_MAX] = [const { AtomicPtr::new(core::ptr::null_mut()) }; LEVELS_MAX];
static PAGE_FDS: [AtomicI32; LEVELS_MAX] = [const { AtomicI32::new(-1) }; LEVELS_MAX];
static FRONT_FDS: [AtomicI32; LEVELS_MAX] = [const { AtomicI32::new(-1) }; LEVELS_MAX];
/// The processes that made the pages: a forked child takes part in its parent's sandbox, but enters one of its own on a page of
/// its own.
static MAKERS: [AtomicI32; LEVELS_MAX] = [const { AtomicI32::new(0) }; LEVELS_MAX];
static PAGES: [AtomicPtr<Page>; LEVELS_MAX] = [const { AtomicPtr::new(core::ptr::null_mut()) }; LEVELS_MAX];

/// What entering and leaving change; hooks never look at it.
pub struct Desk {
    /// Ids of the sandboxes that are entered, lowest level first.
    entered: Vec<Entered>,
    /// Ids of those left last, by level: their findings can still be asked for.
    left: [i64; LEVELS_MAX],
    /// The scratch journals of the levels, kept mapped.
    scratch: [Option<BoxedSink>; LEVELS_MAX],
    /// Where outsiders can see which sandbox this process is in.
    views: Views,
}

struct Entered {
    id: i64,
    flags: u32,
    is_seeded: bool,
    is_suspended: bool,
}

static DESK: Mutex<Desk> = Mutex::new(Desk {
    entered: Vec::new(),
    left: [0; LEVELS_MAX],
    scratch: [const { None }; LEVELS_MAX],
    views: Views::new(),
});

static GENERATION: AtomicU64 = AtomicU64::new(0);

fn desk() -> MutexGuard<'static, Desk> {
    DESK.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// This file's lock.
#[allow(dead_code, reason = "held, not read")]
pub struct Held(MutexGuard<'static, Desk>);

/// Holds the lock, so that a fork does not copy it half-way.
pub fn lock() -> Held {
    Held(desk())
}

/// All sandboxes that exist.
pub fn sandboxes() -> impl Iterator<Item = &'static Sandbox> {
    // SAFETY: null, or the address of a sandbox that is never freed (H7).
    LEVELS.iter().filter_map(|level| unsafe { level.load(Ordering::Acquire).as_ref() })
}

/// The sandbox of a level that has been used before.
fn level(depth: usize) -> Option<&'static Sandbox> {
    // SAFETY: null, or the address of a sandbox that is never freed (H7).
    unsafe { LEVELS[depth].load(Ordering::Acquire).as_ref() }
}

/// The page of a level that has been used before.
pub fn page_of(depth: usize) -> Option<&'static Page> {
    // SAFETY: null, or the address of a page that is never unmapped (H7).
    unsafe { PAGES[depth].load(Ordering::Acquire).as_ref() }
}

/// Enters the sandbox of a parent process, on its page, as the lowest level of this one.
pub fn enter_inherited(page: &'static Page, settings: &Settings<'_>, thread: &mut Thread) -> Option<&'static Sandbox> {
    let sandbox: &'static Sandbox = Box::leak(Box::new(Sandbox::new(0, &page.front.clockwork)));
    let id = GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
    sandbox.enter(id, settings, Journaling::None, thread).ok()?;
    PAGES[0].store(core::ptr::from_ref(page).cast_mut(), Ordering::Release);
    LEVELS[0].store(core::ptr::from_ref(sandbox).cast_mut(), Ordering::Release);
    let is_seeded = sandbox.entropy_mode() != Mode::Off;
    let flags = settings.flags;
    desk().entered.push(Entered { id: id as i64, flags, is_seeded, is_suspended: false });
    openssl::switch(is_seeded);
    guard::activate(Some(sandbox));
    Some(sandbox)
}

/// The sandbox and page of a level, made if need be.
fn make_level(depth: usize, desk: &mut Desk) -> Result<(&'static Sandbox, &'static Page), (i32, String)> {
    if let (Some(sandbox), Some(page), true) = (level(depth), page_of(depth), is_own(depth)) {
        return Ok((sandbox, page));
    }
    let refused = || (status::SYSTEM, format!("no memory for a clock page: {}", std::io::Error::last_os_error()));
    let (page, fd, front_fd) = page::create().ok_or_else(refused)?;
    // What a forked process finds at a level is its maker's.
    desk.scratch[depth] = None;
    for former in [PAGE_FDS[depth].swap(fd, Ordering::AcqRel), FRONT_FDS[depth].swap(front_fd, Ordering::AcqRel)] {
        if former >= 0 {
            // SAFETY: this process's copy of a descriptor of ours.
            unsafe { libc::close(former) };
        }
    }
    MAKERS[depth].store(fork::owner(), Ordering::Release);
    desk.views.add_level((depth, front_fd));
    let sandbox: &'static Sandbox = Box::leak(Box::new(Sandbox::new(depth, &page.front.clockwork)));
    PAGES[depth].store(core::ptr::from_ref(page).cast_mut(), Ordering::Release);
    LEVELS[depth].store(core::ptr::from_ref(sandbox).cast_mut(), Ordering::Release);
    Ok((sandbox, page))
}

/// Whether this very process has made that level.
fn is_own(depth: usize) -> bool {
    MAKERS[depth].load(Ordering::Acquire) == fork::owner()
}

impl Desk {
    /// Shows outsiders the sandbox that the thread which enters and leaves is in. A sandbox of the parent's is shown by it.
    fn show(&mut self) {
        if self.views.is_empty() {
            return;
        }
        let depth = self.entered.len().checked_sub(1);
        let is_seen = |&depth: &usize| !self.entered[depth].is_suspended && is_own(depth);
        self.views.set_sight(depth.filter(is_seen));
    }

    /// The level of an entered sandbox.
    fn depth_of(&self, id: i64) -> Option<usize> {
        self.entered.iter().position(|entered| entered.id == id)
    }
}

/// The sandbox with that id, entered or left last at its level.
fn sandbox_of(id: i64) -> Option<&'static Sandbox> {
    let desk = desk();
    let depth = desk.depth_of(id).or_else(|| desk.left.iter().position(|&left| left == id && id != 0))?;
    drop(desk);
    level(depth)
}

/// A section in which everything is real, because a front end calls and not the program.
struct RealSection;

impl RealSection {
    fn begin() -> RealSection {
        guard::real_begin();
        RealSection
    }
}

impl Drop for RealSection {
    fn drop(&mut self) {
        guard::real_end();
    }
}

/// Commits what the calling thread read last inside a sandbox, before something is told of it or changed. The caller holds a
/// real section.
fn commit(sandbox: &Sandbox) {
    if let Some(thread) = threads::current() {
        // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
        sandbox.commit_known(unsafe { &mut *thread }, &Registered);
    }
}

fn fail(error: *mut Text, code: i32, text: impl core::fmt::Display) -> i32 {
    // SAFETY: null, or the caller's buffer.
    if let Some(error) = unsafe { error.as_mut() } {
        error.len = 0;
        let _ = write!(error, "{text}");
    }
    code
}

/// The bytes of a slice; empty where it is absent.
///
/// # Safety
/// The slice describes memory that lives as long as the call.
unsafe fn bytes<'a>(slice: Slice) -> &'a [u8] {
    if slice.data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(slice.data, slice.len) }
}

unsafe extern "C" fn api_attach(host: *const Host, error: *mut Text) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: null, or the caller's table, which is copied.
    if let Some(host) = unsafe { host.as_ref() } {
        if host.size as usize != size_of::<Host>() {
            return fail(error, status::INVALID, "the host table has another size: front end and engine differ");
        }
        host::register(*host);
    }
    pipes::make_room();
    condition::learn();
    semaphores::learn();
    inherit::learn_path();
    fork::prepare();
    match attach::attach() {
        Ok(()) => {
            host_lock::learn();
            show_clocks_as_told(error)
        }
        Err(text) => fail(error, status::UNSUPPORTED, text),
    }
}

/// Where a server follows the clocks of all processes that a command starts, a variable tells them so.
fn show_clocks_as_told(error: *mut Text) -> i32 {
    let folder = std::env::var_os("HERMETIC_CLOCKS").unwrap_or_default();
    if !std::path::Path::new(&folder).is_dir() {
        // Not set, or the server has ended.
        return status::OK;
    }
    match desk().views.add(std::os::unix::ffi::OsStrExt::as_bytes(folder.as_os_str()), &own_fronts()) {
        Ok(()) => status::OK,
        Err(text) => fail(error, status::SYSTEM, text),
    }
}

/// The levels that this process has made.
fn own_fronts() -> Vec<Level> {
    let fronts = FRONT_FDS.iter().map(|fd| fd.load(Ordering::Acquire)).enumerate();
    fronts.filter(|&(depth, fd)| fd >= 0 && is_own(depth)).collect()
}

unsafe extern "C" fn enter(config: *const Config, error: *mut Text) -> i64 {
    let _real = RealSection::begin();
    // SAFETY: null, or the caller's structure.
    let Some(config) = (unsafe { config.as_ref() }) else { return i64::from(status::MISUSE) };
    if config.size as usize != size_of::<Config>() {
        let text = "the configuration has another size: front end and engine differ";
        return i64::from(fail(error, status::INVALID, text));
    }
    attach::scan();
    // SAFETY: the caller's slices live as long as the call.
    match unsafe { enter_level(config) } {
        Ok(id) => id,
        Err((code, text)) => i64::from(fail(error, code, text)),
    }
}

unsafe fn enter_level(config: &Config) -> Result<i64, (i32, String)> {
    let mut desk = desk();
    let depth = desk.entered.len();
    if let Some(below) = desk.entered.last() {
        if below.flags & flag::AUTOMATIC == 0 {
            return Err((status::ACTIVE, "a sandbox is active in this process already".to_owned()));
        }
    }
    if depth == LEVELS_MAX {
        return Err((status::MISUSE, format!("{LEVELS_MAX} sandboxes lie on top of each other already")));
    }
    let (sandbox, page) = make_level(depth, &mut desk)?;
    // SAFETY: the caller's promise.
    let seed = unsafe { bytes(config.seed) };
    // SAFETY: the caller's promise.
    let allow = unsafe { bytes(config.allow) };
    let allow =
        core::str::from_utf8(allow).map_err(|_| (status::INVALID, "policy entries must be UTF-8".to_owned()))?;
    let settings = Settings {
        flags: config.flags,
        seed,
        now_ns: config.now_ns,
        monotonic_ns: monotonic_start(config.flags),
        real_coarse_ns: kernel::read(libc::CLOCK_REALTIME_COARSE),
        inherits: false,
        tick_ps: config.tick_ps,
        spin_limit: config.spin_limit,
        allow,
    };
    // SAFETY: the caller's promise.
    let journal = unsafe { journaling(config, &mut desk.scratch[depth]) }?;
    let record = threads::current().ok_or((status::SYSTEM, "too many threads have a record".to_owned()))?;
    if let Some(below) = guard::active() {
        commit(below);
    }
    let id = GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: this thread's own record (H8); hooks of this thread are bypassed meanwhile.
    let thread = unsafe { &mut *record };
    sandbox.enter(id, &settings, journal, thread).map_err(|error| match error {
        EnterError::Entry(text) => (status::INVALID, text),
        EnterError::Journal(error) => (status::JOURNAL, error.to_string()),
        error => (status::SYSTEM, error.to_string()),
    })?;
    if desk.entered.last().is_some_and(|below| below.is_suspended) {
        // This thread sees the new sandbox, and the real world again when it leaves.
        guard::real_end();
    }
    let is_seeded = sandbox.entropy_mode() != Mode::Off;
    desk.entered.push(Entered { id: id as i64, flags: config.flags, is_seeded, is_suspended: false });
    openssl::switch(is_seeded);
    inherit::hand_on(page, PAGE_FDS[depth].load(Ordering::Acquire), sandbox, &settings);
    parking::begin(page, depth, id, wall_of(sandbox, thread), thread);
    page.front.set_mode(sandbox.clock_mode());
    guard::activate(Some(sandbox));
    desk.show();
    parking::seat_others();
    Ok(id as i64)
}

fn monotonic_start(flags: u32) -> i64 {
    if flags & flag::MONOTONIC_CONTINUE == 0 {
        return MONOTONIC_ORIGIN_NS;
    }
    // On top of another sandbox its clock goes on; otherwise the real one does.
    let ns = || kernel::read(libc::CLOCK_MONOTONIC);
    match (guard::active(), threads::current()) {
        // SAFETY: this thread's own record (H8).
        (Some(below), Some(thread)) => below.peek_clock(unsafe { &mut *thread }, Clock::Monotonic, ns),
        _ => ns(),
    }
}

unsafe fn journaling<'a>(config: &Config, scratch: &mut Option<BoxedSink>) -> Result<Journaling<'a>, (i32, String)> {
    // SAFETY: the caller's promise.
    let replay = unsafe { bytes(config.replay) };
    if !replay.is_empty() {
        return Ok(Journaling::Replay { raw: replay });
    }
    // SAFETY: the caller's promise.
    let record = unsafe { bytes(config.record) };
    if record.is_empty() {
        return Ok(Journaling::None);
    }
    let sink = match scratch.take() {
        Some(kept) if kept.path() == record => kept,
        _ => Box::new(Scratch::create(record).map_err(|error| {
            let path = String::from_utf8_lossy(record);
            (status::SYSTEM, format!("cannot record to {path}: {error}"))
        })?),
    };
    // SAFETY: the caller's promise.
    let head = unsafe { bytes(config.head) };
    Ok(Journaling::Record { sink, head })
}

unsafe extern "C" fn leave(id: i64, outcome: *mut Outcome) -> i32 {
    let _real = RealSection::begin();
    let mut desk = desk();
    match desk.entered.last() {
        Some(top) if top.id == id => {}
        _ => return status::MISUSE,
    }
    let depth = desk.entered.len() - 1;
    let Some(left) = level(depth) else { return status::MISUSE };
    commit(left);
    desk.views.set_sight(None);
    if let Some(top) = desk.entered.pop() {
        if top.is_suspended {
            guard::real_end();
        }
    }
    if desk.entered.last().is_some_and(|below| below.is_suspended) {
        guard::real_begin();
    }
    desk.left[depth] = id;
    timers::release();
    let below = depth.checked_sub(1);
    guard::activate(below.and_then(level));
    // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
    let mut thread = threads::current().map(|record| unsafe { &mut *record });
    parking::go_back(below.and_then(|below| Some((below, page_of(below)?))), thread.as_deref_mut());
    if let (None, Some(thread)) = (below, thread) {
        // Other threads may enter sandboxes now; this one is none of theirs.
        thread.retire();
    }
    openssl::switch(desk.entered.last().is_some_and(|below| below.is_seeded));
    note_page(left);
    desk.show();
    let (told, sink) = left.leave();
    if let Some(sink) = sink {
        desk.scratch[depth] = Some(sink);
    }
    // SAFETY: null, or the caller's structure.
    if let Some(outcome) = unsafe { outcome.as_mut() } {
        *outcome = told;
    }
    status::OK
}

/// Adds findings for what the page tells: children that took no part, a turn that was lost.
fn note_page(sandbox: &Sandbox) {
    if let Some(page) = page_of(sandbox.depth()) {
        children::take_externals(page, |name| sandbox.note_external(name));
        if let Some(number) = page.lost_turn.swap(0, Ordering::Relaxed).checked_sub(1) {
            sandbox.note_lost_turn(number);
        }
    }
}

/// Flips whether the calling thread, and only it, sees the sandbox.
fn set_suspended(id: i64, is_suspended: bool) -> i32 {
    let mut desk = desk();
    let Some(depth) = desk.depth_of(id) else { return status::MISUSE };
    let entered = &mut desk.entered[depth];
    if entered.is_suspended == is_suspended {
        return status::MISUSE;
    }
    entered.is_suspended = is_suspended;
    if is_suspended {
        let _real = RealSection::begin();
        if let Some(sandbox) = level(depth) {
            commit(sandbox);
        }
        guard::real_begin();
    } else {
        guard::real_end();
    }
    desk.show();
    status::OK
}

unsafe extern "C" fn suspend(id: i64) -> i32 {
    set_suspended(id, true)
}

unsafe extern "C" fn resume(id: i64) -> i32 {
    set_suspended(id, false)
}

unsafe extern "C" fn clock_now(id: i64, clock: i32) -> i64 {
    let (Some(sandbox), Some(clock)) = (sandbox_of(id), Clock::from_i32(clock)) else { return 0 };
    let real = || kernel::read(kernel_clock(clock));
    if sandbox.clock_mode() == Mode::Virtual {
        let Some(thread) = threads::current() else { return real() };
        let _real = RealSection::begin();
        // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
        return sandbox.peek_clock(unsafe { &mut *thread }, clock, real);
    }
    // What the handle tells in a recording is a reading like any other, so that replay tells the same.
    match Call::enter() {
        Some(mut call) => {
            let (sandbox, thread) = call.parts();
            sandbox.read_clock(thread, &Registered, clock, real)
        }
        None => real(),
    }
}

fn kernel_clock(clock: Clock) -> libc::clockid_t {
    match clock {
        Clock::Wall => libc::CLOCK_REALTIME,
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Cpu => libc::CLOCK_PROCESS_CPUTIME_ID,
    }
}

unsafe extern "C" fn clock_advance(id: i64, ns: i64) -> i32 {
    let Some(sandbox) = sandbox_of(id) else { return status::MISUSE };
    let _real = RealSection::begin();
    let before_ns = wall_now(sandbox);
    match sandbox.clock_advance(ns) {
        Ok(()) => {
            note_jump(sandbox, jumps::Kind::Advance, before_ns, before_ns.saturating_add(ns));
            sandbox.note_move(kernel::read(libc::CLOCK_REALTIME_COARSE));
            status::OK
        }
        Err(_) => status::INVALID,
    }
}

unsafe extern "C" fn clock_set(id: i64, ns: i64) -> i32 {
    let Some(sandbox) = sandbox_of(id) else { return status::MISUSE };
    let _real = RealSection::begin();
    let before_ns = wall_now(sandbox);
    sandbox.clock_set(ns, || kernel::read(libc::CLOCK_REALTIME));
    note_jump(sandbox, jumps::Kind::Set, before_ns, ns);
    sandbox.note_move(kernel::read(libc::CLOCK_REALTIME_COARSE));
    status::OK
}

/// What the wall clock of a sandbox shows.
fn wall_of(sandbox: &Sandbox, thread: &mut Thread) -> i64 {
    sandbox.peek_clock(thread, Clock::Wall, || kernel::read(libc::CLOCK_REALTIME))
}

fn wall_now(sandbox: &Sandbox) -> i64 {
    // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
    threads::current().map_or(0, |record| wall_of(sandbox, unsafe { &mut *record }))
}

fn note_jump(sandbox: &Sandbox, kind: jumps::Kind, before_ns: i64, after_ns: i64) {
    if let Some(page) = page_of(sandbox.depth()) {
        jumps::note_handle(page, kind, before_ns, after_ns);
    }
}

unsafe extern "C" fn real_clock(clock: i32) -> i64 {
    Clock::from_i32(clock).map_or(0, |clock| kernel::read(kernel_clock(clock)))
}

unsafe extern "C" fn real_sleep(ns: i64) {
    kernel::sleep(ns.max(0));
}

unsafe extern "C" fn real_entropy(buffer: *mut u8, len: usize) -> i32 {
    if buffer.is_null() {
        return status::MISUSE;
    }
    // SAFETY: the caller's buffer.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer, len) };
    if kernel::entropy(bytes) {
        status::OK
    } else {
        status::SYSTEM
    }
}

unsafe extern "C" fn real_begin() {
    if let Some(mut call) = Call::enter() {
        let (sandbox, thread) = call.parts();
        sandbox.commit(thread, &Registered);
    }
    guard::real_begin();
}

unsafe extern "C" fn real_end() {
    guard::real_end();
}

unsafe extern "C" fn chance_begin() {
    if let Some(mut call) = Call::enter() {
        let (sandbox, thread) = call.parts();
        sandbox.begin_chance(thread, &Registered);
    }
}

unsafe extern "C" fn chance_end() {
    if let Some(mut call) = Call::enter() {
        let (sandbox, thread) = call.parts();
        sandbox.end_chance(thread, &Registered);
    }
}

unsafe extern "C" fn is_inside() -> i32 {
    i32::from(Call::enter().is_some())
}

unsafe extern "C" fn step() -> i32 {
    let Some(mut call) = Call::enter() else { return 0 };
    let (sandbox, thread) = call.parts();
    i32::from(sandbox.step(thread))
}

unsafe extern "C" fn offer_turn() {
    glance::offer_turn();
}

unsafe extern "C" fn allow(id: i64, entry: Slice, error: *mut Text) -> i32 {
    let Some(sandbox) = sandbox_of(id) else { return status::MISUSE };
    let _real = RealSection::begin();
    // SAFETY: the caller's slice lives as long as the call.
    let Ok(entry) = core::str::from_utf8(unsafe { bytes(entry) }) else {
        return fail(error, status::INVALID, "a policy entry must be UTF-8");
    };
    match sandbox.allow(entry) {
        Ok(()) => status::OK,
        Err(text) => fail(error, status::INVALID, text),
    }
}

/// Judges for the language ring. The pending name of a hidden look-up is settled by any judgement.
fn check(target: &Target<'_>, what: &str, out: *mut Finding) -> i32 {
    let Some(found) = network::judge(what, target) else { return status::OK };
    // SAFETY: null, or the caller's structure.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = found;
    }
    status::REFUSED
}

unsafe extern "C" fn check_address(address: *const c_void, len: u32, out: *mut Finding) -> i32 {
    // SAFETY: the caller's buffer.
    match unsafe { crate::address::Address::read(address, len) } {
        Some(address) => check(&address.target(), "connect to", out),
        None => status::OK,
    }
}

unsafe extern "C" fn check_host(host: Slice, port: i32, out: *mut Finding) -> i32 {
    // SAFETY: the caller's slice lives as long as the call.
    let host = unsafe { bytes(host) };
    let port = u16::try_from(port).ok();
    let what = if port.is_some() { "connect to" } else { "look up" };
    check(&Target::Name { host, port }, what, out)
}

unsafe extern "C" fn is_network_guarded() -> i32 {
    i32::from(network::is_guarded())
}

unsafe extern "C" fn take_pending_name(out: *mut Text) -> i32 {
    let name = threads::take_pending_name();
    if name.len == 0 {
        return 0;
    }
    // SAFETY: null, or the caller's buffer.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = name;
    }
    1
}

unsafe extern "C" fn finding(id: i64, index: u32, out: *mut Finding) -> i32 {
    let _real = RealSection::begin();
    let Some(sandbox) = sandbox_of(id) else { return status::MISUSE };
    note_page(sandbox);
    commit(sandbox);
    let Some(found) = sandbox.finding(index as usize) else { return status::MISUSE };
    // SAFETY: null, or the caller's structure.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = found;
    }
    status::OK
}

unsafe extern "C" fn jump(id: i64, index: u32, out: *mut Jump) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: null, or the caller's structure.
    let Some(out) = (unsafe { out.as_mut() }) else { return status::MISUSE };
    let page = sandbox_of(id).and_then(|sandbox| page_of(sandbox.depth()));
    if page.is_some_and(|page| jumps::read(page, index, out)) {
        status::OK
    } else {
        status::MISUSE
    }
}

unsafe extern "C" fn last_interrupt(out: *mut Text) -> i32 {
    let Some(record) = threads::current() else { return status::MISUSE };
    // SAFETY: this thread's own record (H8).
    let text = unsafe { (*record).interrupt.clone() };
    // SAFETY: null, or the caller's buffer.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = text;
    }
    status::OK
}

unsafe extern "C" fn journal(id: i64, out: *mut Slice) -> i32 {
    let desk = desk();
    let depth = desk.left.iter().position(|&left| left == id && id != 0);
    let Some(scratch) = depth.and_then(|depth| desk.scratch[depth].as_ref()) else { return status::MISUSE };
    // SAFETY: null, or the caller's structure.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = Slice::of(scratch.bytes());
    }
    status::OK
}

unsafe extern "C" fn record_state(id: i64, name: Slice, state: Slice) -> i32 {
    let Some(sandbox) = sandbox_of(id) else { return status::MISUSE };
    let Some(record) = threads::current() else { return status::SYSTEM };
    let _real = RealSection::begin();
    // SAFETY: the caller's slice lives as long as the call.
    let name = unsafe { bytes(name) };
    // SAFETY: as above.
    let state = unsafe { bytes(state) };
    let Ok(name) = core::str::from_utf8(name) else { return status::INVALID };
    // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
    let is_recorded = sandbox.record_state(unsafe { &mut *record }, &Registered, name, state);
    if is_recorded {
        status::OK
    } else {
        status::MISUSE
    }
}

unsafe extern "C" fn draw(id: i64, purpose: u32, buffer: *mut u8, len: usize) -> i32 {
    let (Some(sandbox), Some(purpose)) = (sandbox_of(id), Purpose::from_u32(purpose)) else { return status::MISUSE };
    let (Some(record), false) = (threads::current(), buffer.is_null()) else { return status::MISUSE };
    let _real = RealSection::begin();
    // SAFETY: the caller's buffer.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer, len) };
    // SAFETY: this thread's own record (H8); its hooks are bypassed meanwhile.
    sandbox.draw(unsafe { &mut *record }, purpose, bytes);
    status::OK
}

unsafe extern "C" fn floor_enter(config: *const FloorConfig, error: *mut Text) -> i64 {
    let _real = RealSection::begin();
    // SAFETY: null, or the caller's structure.
    let Some(config) = (unsafe { config.as_ref() }) else { return i64::from(status::MISUSE) };
    if config.size as usize != size_of::<FloorConfig>() {
        let text = "the configuration has another size: front end and engine differ";
        return i64::from(fail(error, status::INVALID, text));
    }
    attach::scan();
    // SAFETY: the caller's slices live as long as the call.
    let text = |slice: Slice| core::str::from_utf8(unsafe { bytes(slice) }).unwrap_or("");
    let settings = FloorSettings {
        allows_loopback: config.flags & flag::ALLOW_LOOPBACK != 0,
        allows_unix: config.flags & flag::ALLOW_UNIX != 0,
        allow: text(config.allow),
        owner: text(config.owner),
        hint_host: text(config.hint_host),
        hint_unix: text(config.hint_unix),
        is_inherited: false,
    };
    // SAFETY: as above.
    let home = unsafe { bytes(config.home) };
    // SAFETY: as above.
    let spool = unsafe { bytes(config.spool) };
    floor::enter(&settings, home, spool).unwrap_or_else(|text| i64::from(fail(error, status::INVALID, text)))
}

unsafe extern "C" fn floor_leave(id: i64) -> i32 {
    let _real = RealSection::begin();
    if floor::leave(id) {
        status::OK
    } else {
        status::MISUSE
    }
}

unsafe extern "C" fn floor_allow(entry: Slice, error: *mut Text) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: the caller's slice lives as long as the call.
    let Ok(entry) = core::str::from_utf8(unsafe { bytes(entry) }) else {
        return fail(error, status::INVALID, "a policy entry must be UTF-8");
    };
    match floor::allow(entry) {
        Ok(()) => status::OK,
        Err(text) => fail(error, status::INVALID, text),
    }
}

unsafe extern "C" fn set_home(home: Slice) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: the caller's slice lives as long as the call.
    if floor::set_home(unsafe { bytes(home) }) {
        status::OK
    } else {
        status::INVALID
    }
}

unsafe extern "C" fn floor_note(finding: *const Finding) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: null, or the caller's structure.
    let Some(found) = (unsafe { finding.as_ref() }) else { return status::MISUSE };
    floor::note(found);
    status::OK
}

unsafe extern "C" fn floor_pending() -> u32 {
    floor::pending()
}

unsafe extern "C" fn floor_take(out: *mut Finding) -> i32 {
    let Some(found) = floor::take() else { return 0 };
    // SAFETY: null, or the caller's structure.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = found;
    }
    1
}

unsafe extern "C" fn show_clocks(folder: Slice, is_on: i32, error: *mut Text) -> i32 {
    let _real = RealSection::begin();
    // SAFETY: the caller's slice lives as long as the call.
    let folder = unsafe { bytes(folder) };
    let mut desk = desk();
    if is_on == 0 {
        desk.views.remove(folder);
        return status::OK;
    }
    match desk.views.add(folder, &own_fronts()) {
        Ok(()) => {
            desk.show();
            status::OK
        }
        Err(text) => fail(error, status::SYSTEM, text),
    }
}

unsafe extern "C" fn describe(line: Option<unsafe extern "C" fn(*const u8, usize, *mut c_void)>, data: *mut c_void) {
    let Some(line) = line else { return };
    let report = attach::report();
    let facts = [
        format!("engine {} (ABI {ABI_VERSION})", env!("CARGO_PKG_VERSION")),
        format!("{} objects, {} slots rewritten, {} could not be", report.objects, report.slots, report.failed),
        "not seen: direct system calls, static programs, dlmopen, libcrypto linked into another library".to_owned(),
    ];
    for fact in facts {
        // SAFETY: the caller's function and data.
        unsafe { line(fact.as_ptr(), fact.len(), data) };
    }
}
