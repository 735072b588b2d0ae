//! The C ABI between `libhermetic.so` (the one engine of a process) and its front ends.
//!
//! A front end finds the symbol [`SYMBOL`] in the process, or opens its own copy of the library and looks there; the
//! symbol is a function that returns a `*const Api`. Both sides compare [`ABI_VERSION`] and the release string before
//! anything else is read, so an engine of another version is refused instead of misread.
//!
//! All strings are UTF-8 with an explicit length. All times are integer nanoseconds. All functions may be called from any
//! thread; none of them unwinds.
#![no_std]

use core::ffi::{c_char, c_int, c_void};

/// Changes with every change to this file.
pub const ABI_VERSION: u32 = 9;

/// The exported function that returns the [`Api`]: `extern "C" fn() -> *const Api`.
pub const SYMBOL: &core::ffi::CStr = c"hermetic_abi";

/// A borrowed piece of text or bytes. A null pointer means "absent", which is not the same as empty.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub data: *const u8,
    pub len: usize,
}

impl Slice {
    pub const ABSENT: Slice = Slice { data: core::ptr::null(), len: 0 };

    pub const fn of(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr(), len: bytes.len() }
    }
}

/// A text that the engine writes for the caller: a fixed buffer, cut at its end on a character boundary.
#[repr(C)]
#[derive(Clone)]
pub struct Text {
    pub len: usize,
    pub data: [u8; Text::CAPACITY],
}

impl Text {
    pub const CAPACITY: usize = 1024;

    pub const fn new() -> Text {
        Text { len: 0, data: [0; Text::CAPACITY] }
    }

    pub fn as_str(&self) -> &str {
        let bytes = &self.data[..self.len.min(Text::CAPACITY)];
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
        }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::new()
    }
}

impl core::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut take = text.len().min(Text::CAPACITY - self.len);
        while !text.is_char_boundary(take) {
            take -= 1;
        }
        self.data[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}

/// Bits of [`Config::flags`]. A subsystem whose bit is absent stays real.
pub mod flag {
    /// Clocks and waits are virtual.
    pub const CLOCK: u32 = 1 << 0;
    /// The operating system's entropy is drawn from the seed.
    pub const ENTROPY: u32 = 1 << 1;
    /// Connections, addressed sends and look-ups are refused unless the policy allows them.
    pub const NETWORK: u32 = 1 << 2;
    pub const ALLOW_LOOPBACK: u32 = 1 << 3;
    pub const ALLOW_UNIX: u32 = 1 << 4;
    /// Directory listings are sorted by name.
    pub const ORDER_SORTED: u32 = 1 << 5;
    /// Directory listings are shuffled by the seed.
    pub const ORDER_CHAOS: u32 = 1 << 6;
    /// Entered by a harness (the pytest plugin) and not by the user: another sandbox may be entered on top and suspends it.
    pub const AUTOMATIC: u32 = 1 << 7;
    /// The monotonic clock continues from its real value at entry instead of from the fixed origin.
    pub const MONOTONIC_CONTINUE: u32 = 1 << 8;
    /// While replaying, a divergence is an error. Absent: it is noted once per kind, and the virtual value is served.
    pub const STRICT_REPLAY: u32 = 1 << 9;
    /// While recording, the caller pinned `now`: the clock stays virtual, nothing of it needs a journal.
    pub const PINNED_CLOCK: u32 = 1 << 10;
    /// While recording, the caller pinned `seed`: entropy stays seeded.
    pub const PINNED_SEED: u32 = 1 << 11;
    /// A refusal fails the test even if the code under test swallowed it.
    pub const NETWORK_STRICT: u32 = 1 << 12;
    /// Programs that the sandbox starts take part in it.
    pub const INHERIT: u32 = 1 << 13;
    /// A thread of the host offers its turn after numbers of steps that are drawn from the seed, and not only when it waits.
    pub const SCHEDULE_SEEDED: u32 = 1 << 14;
    /// The network policy holds for the sandbox's own threads only: a harness runs other tests beside this one, in threads of
    /// the same process, which have the network as it is. Absent: it holds for every thread of the process.
    pub const OWN_THREADS: u32 = 1 << 15;
}

/// What [`Api::enter`] is told.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub size: u32,
    pub flags: u32,
    /// Decimal text of the seed; an optional sign and digits.
    pub seed: Slice,
    /// Virtual wall clock at entry, nanoseconds since the Unix epoch.
    pub now_ns: i64,
    /// How far the monotonic clocks move per reading, in picoseconds (the default of 1 µs is 1 000 000).
    pub tick_ps: u64,
    /// Readings of a clock that does not move before a thread counts as spinning; 0 switches the detector off.
    pub spin_limit: u64,
    /// Policy entries, separated by `\n`; absent or empty refuses everything that loopback and unix do not allow.
    pub allow: Slice,
    /// Where to record: path of the scratch file (kept mapped and used again while the path stays the same).
    pub record: Slice,
    /// While recording: the journal's head, as `hermetic_journal` encodes it.
    pub head: Slice,
    /// While replaying: the whole journal in its raw form. Read during `enter` only.
    pub replay: Slice,
    /// Prefix that call sites drop from their file names (the project's root), so that journals travel.
    pub root: Slice,
}

/// Clocks as the ABI numbers them.
pub mod clock {
    pub const WALL: i32 = 0;
    pub const MONOTONIC: i32 = 1;
    pub const CPU: i32 = 2;
}

/// Kinds of [`Finding`].
pub mod finding {
    /// A connection, send or look-up was refused.
    pub const REFUSAL: u32 = 1;
    /// A thread read a clock that does not move more often than the limit.
    pub const SPIN: u32 = 2;
    /// Replay was asked for something else than the journal holds at this place.
    pub const REPLAY_MISMATCH: u32 = 3;
    /// Replay was asked for more than the journal holds.
    pub const REPLAY_EXHAUSTED: u32 = 4;
    /// Replay ended with recorded events unused.
    pub const REPLAY_LEFTOVER: u32 = 5;
    /// Recording stopped early (a full disk); the journal is truthful up to there.
    pub const RECORD_STOPPED: u32 = 6;
    /// The floor refused a connection, send, look-up or listening socket.
    pub const FLOOR_NETWORK: u32 = 7;
    /// The floor refused to start a program, or saw one do what it may not.
    pub const FLOOR_PROCESS: u32 = 8;
    /// Something was written outside of a test's directories.
    pub const FLOOR_WRITE: u32 = 9;
    /// All threads of the sandbox wait for each other, and no deadline will end it.
    pub const DEADLOCK: u32 = 10;
    /// A child takes no part in the sandbox, and time followed the real one while it ran.
    pub const EXTERNAL_CHILD: u32 = 11;
    /// A thread computed for so long that others no longer waited for it: their order is the machine's.
    pub const TURN_LOST: u32 = 12;
}

/// What [`Api::floor_enter`] is told. A floor lies under all sandboxes and holds for every thread of the process; of several,
/// all must allow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FloorConfig {
    pub size: u32,
    /// Of [`flag`]: ALLOW_LOOPBACK, ALLOW_UNIX.
    pub flags: u32,
    /// Policy entries, separated by `\n`.
    pub allow: Slice,
    /// Who refuses, for messages: `stricttest`.
    pub owner: Slice,
    /// How a message ends for hosts, and for unix sockets: which setting would allow it.
    pub hint_host: Slice,
    pub hint_unix: Slice,
    /// What `getpwuid` and its fellows tell of this user's home directory; absent leaves them alone.
    pub home: Slice,
    /// A file that forked children add their findings to, a line each; absent drops them.
    pub spool: Slice,
}

/// Something that the engine noticed inside a sandbox. Equal findings are counted, not repeated.
#[repr(C)]
#[derive(Clone)]
pub struct Finding {
    pub kind: u32,
    /// How often it happened.
    pub count: u32,
    /// For refusals: the port, or -1 where there is none.
    pub port: i32,
    /// The verdict of the test or sandbox must be "failed".
    pub fatal: u32,
    /// The floor of the program that started this one refused: it is told there.
    pub is_inherited: u32,
    /// For refusals: host, address or path.
    pub subject: Text,
    /// One sentence for people.
    pub message: Text,
    /// `file:line in function`, or empty.
    pub site: Text,
}

impl Finding {
    /// An empty one, to be filled in.
    pub const BLANK: Finding = Finding {
        kind: 0,
        count: 0,
        port: -1,
        fatal: 0,
        is_inherited: 0,
        subject: Text::new(),
        message: Text::new(),
        site: Text::new(),
    };
}

/// One move of time, or a reason why it did not move.
#[repr(C)]
#[derive(Clone)]
pub struct Jump {
    /// Of all moves of the sandbox, from 0. Only the last ones are kept.
    pub number: u64,
    /// The wall clock before and after, in nanoseconds since the sandbox was entered. Equal where time did not move.
    pub before_ns: i64,
    pub after_ns: i64,
    /// For people: `deadline of thread 2`, `advance`, `set`, `followed real time: …`, `not jumped: …`.
    pub why: Text,
}

impl Jump {
    /// An empty one, to be filled in.
    pub const BLANK: Jump = Jump { number: 0, before_ns: 0, after_ns: 0, why: Text::new() };
}

/// What [`Api::leave`] tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub findings: u32,
    pub fatal: u32,
    /// Events written to the journal, and its length in bytes.
    pub events: u64,
    pub journal_len: u64,
    /// Virtual nanoseconds that passed.
    pub elapsed_ns: i64,
    /// Threads other than the first that took part.
    pub threads: u32,
}

/// Result codes: zero or positive is success.
pub mod status {
    pub const OK: i32 = 0;
    /// The call makes no sense now (no such sandbox, wrong order of exits).
    pub const MISUSE: i32 = -1;
    /// A sandbox that the user entered is active in this process.
    pub const ACTIVE: i32 = -2;
    /// A value in the configuration is not acceptable; the text names it.
    pub const INVALID: i32 = -3;
    /// The machine or the file system refused; the text names what.
    pub const SYSTEM: i32 = -4;
    /// The journal cannot be used; the text says why.
    pub const JOURNAL: i32 = -5;
    /// The engine cannot attach to this process; the text says why.
    pub const UNSUPPORTED: i32 = -6;
    /// The policy refuses; the text is the message for the user.
    pub const REFUSED: i32 = -7;
}

/// A place in the host language's code: opaque to the engine, equal for equal places.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The code object; the adapter keeps it alive from its first description until the process ends.
    pub code: usize,
    /// Offset inside the code.
    pub offset: usize,
}

/// What [`Host::place`] answers: these bits.
pub mod look {
    use core::ffi::c_int;

    /// There is a place, and it was written.
    pub const FOUND: c_int = 1;
    /// The calling thread runs host code now.
    pub const RUNNING: c_int = 2;
}

/// A described [`Place`].
#[repr(C)]
#[derive(Clone)]
pub struct PlaceText {
    pub file: Text,
    pub function: Text,
    pub line: u32,
    /// The place was reached through the import machinery: it may or may not happen again.
    pub importing: u32,
}

impl PlaceText {
    /// An empty one, to be filled in.
    pub const BLANK: PlaceText = PlaceText { file: Text::new(), function: Text::new(), line: 0, importing: 0 };
}

/// What a host language lends to the engine. The functions are called from inside hooks: they must not take a lock that the
/// caller can hold, and only `describe`, called once per place, may allocate.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    pub size: u32,
    /// Any address inside the interpreter's image: its own waits are its hand-off between threads, not the user's.
    pub image: *const c_void,
    /// Whether it reads the monotonic clock for each lock that it takes (CPython from 3.11 on), or only where it sets a limit.
    pub locks_read_clock: u32,
    /// Whether the calling thread runs host code now (for CPython: holds the interpreter lock).
    pub is_running: Option<unsafe extern "C" fn() -> c_int>,
    /// Whether the calling thread is one of the host's, whatever it runs now (for CPython: has a thread state). One that the
    /// host started and does not know any more is about to end.
    pub is_known: Option<unsafe extern "C" fn() -> c_int>,
    /// The place that the calling thread executes, also where it has given the host's lock away. Returns [`look`] bits.
    pub place: Option<unsafe extern "C" fn(out: *mut Place) -> c_int>,
    /// Describes a place. Only called while `is_running`.
    pub describe: Option<unsafe extern "C" fn(place: Place, out: *mut PlaceText) -> c_int>,
    /// Whether the calling thread is inside the import machinery right now. Only called while `is_running`.
    pub is_importing: Option<unsafe extern "C" fn() -> c_int>,
    /// Makes the calling thread raise an error for the finding `kind` at its next opportunity; the error's text is the
    /// thread's last finding. Also called for a thread that comes back from a wait and does not run host code yet.
    pub interrupt: Option<unsafe extern "C" fn(kind: u32)>,
}

/// The engine, as front ends see it. `id` is what `enter` returned.
#[repr(C)]
pub struct Api {
    pub abi_version: u32,
    pub size: u32,
    /// Release of the library, NUL-terminated.
    pub version: *const c_char,
    /// Rewrites the relocation slots of this process. Idempotent; a later host replaces an absent one.
    pub attach: unsafe extern "C" fn(host: *const Host, error: *mut Text) -> i32,
    /// Enters a sandbox. Returns its id (> 0) or a status. The calling thread becomes the root of its threads.
    pub enter: unsafe extern "C" fn(config: *const Config, error: *mut Text) -> i64,
    /// Leaves the sandbox, which must be the innermost one; the one below becomes active again.
    pub leave: unsafe extern "C" fn(id: i64, outcome: *mut Outcome) -> i32,
    /// The world is real again until `resume`; nothing is lost. For harnesses, between the phases of a test.
    pub suspend: unsafe extern "C" fn(id: i64) -> i32,
    pub resume: unsafe extern "C" fn(id: i64) -> i32,
    /// Reads a virtual clock without ticking.
    pub clock_now: unsafe extern "C" fn(id: i64, clock: i32) -> i64,
    /// Moves all clocks on by `ns` >= 0.
    pub clock_advance: unsafe extern "C" fn(id: i64, ns: i64) -> i32,
    /// Sets the wall clock only.
    pub clock_set: unsafe extern "C" fn(id: i64, ns: i64) -> i32,
    /// Real answers, whatever is active.
    pub real_clock: unsafe extern "C" fn(clock: i32) -> i64,
    pub real_sleep: unsafe extern "C" fn(ns: i64),
    pub real_entropy: unsafe extern "C" fn(buffer: *mut u8, len: usize) -> i32,
    /// Everything this thread does until the matching `real_end` is real (nests).
    pub real_begin: unsafe extern "C" fn(),
    pub real_end: unsafe extern "C" fn(),
    /// What this thread does until the matching `chance_end` is no part of the program's course, as in a garbage collection:
    /// nothing ticks, and a replay neither misses it nor expects it. Does not nest.
    pub chance_begin: unsafe extern "C" fn(),
    pub chance_end: unsafe extern "C" fn(),
    /// 1 if the calling thread takes part in the active sandbox; cheap.
    pub is_inside: unsafe extern "C" fn() -> i32,
    /// Counts a step of the calling thread, for [`flag::SCHEDULE_SEEDED`]: 1 if it shall offer its turn now.
    pub step: unsafe extern "C" fn() -> i32,
    /// The calling thread, which has given the host's lock away, lets the seed decide between itself and those that are ready. It
    /// comes back when it is its turn.
    pub offer_turn: unsafe extern "C" fn(),
    /// Adds a policy entry. INVALID names what is wrong with it.
    pub allow: unsafe extern "C" fn(id: i64, entry: Slice, error: *mut Text) -> i32,
    /// May this thread talk to that address (`struct sockaddr`)? REFUSED fills the finding, which is then also recorded.
    pub check_address: unsafe extern "C" fn(address: *const c_void, len: u32, out: *mut Finding) -> i32,
    /// May this thread look that host up, or talk to it by name? `port` is -1 where unknown. As `check_address`.
    pub check_host: unsafe extern "C" fn(host: Slice, port: i32, out: *mut Finding) -> i32,
    /// 1 if the active sandbox, as this thread sees it, restricts the network; cheap.
    pub is_network_guarded: unsafe extern "C" fn() -> i32,
    /// The libc ring let a refused name of `connect((name, port))` through as a placeholder, so that the language ring can
    /// name host and port: returns 1, and the name, once.
    pub take_pending_name: unsafe extern "C" fn(out: *mut Text) -> i32,
    /// The finding number `index` (from 0) of a sandbox, also after `leave`, until the next `enter`. OK or MISUSE.
    pub finding: unsafe extern "C" fn(id: i64, index: u32, out: *mut Finding) -> i32,
    /// The move of time number `index` (from 0) of those that are kept, oldest first; also after `leave`, until the next
    /// `enter`. OK or MISUSE.
    pub jump: unsafe extern "C" fn(id: i64, index: u32, out: *mut Jump) -> i32,
    /// Text of the finding that last interrupted this thread.
    pub last_interrupt: unsafe extern "C" fn(out: *mut Text) -> i32,
    /// The raw journal of the sandbox left last (or still active); valid until the next `enter`.
    pub journal: unsafe extern "C" fn(id: i64, out: *mut Slice) -> i32,
    /// While recording: writes the generator state (opaque bytes) into the journal, as an event of this thread.
    pub record_state: unsafe extern "C" fn(id: i64, name: Slice, bytes: Slice) -> i32,
    /// Draws from the sandbox's own stream number `purpose` (0 is what `getrandom` gives).
    pub draw: unsafe extern "C" fn(id: i64, purpose: u32, buffer: *mut u8, len: usize) -> i32,
    /// Lays a floor on top of those that are there. Returns its id (> 0) or a status.
    pub floor_enter: unsafe extern "C" fn(config: *const FloorConfig, error: *mut Text) -> i64,
    /// Takes a floor away, whichever it is.
    pub floor_leave: unsafe extern "C" fn(id: i64) -> i32,
    /// Adds an entry to every floor: a helper socket of the harness.
    pub floor_allow: unsafe extern "C" fn(entry: Slice, error: *mut Text) -> i32,
    /// What `getpwuid` and its fellows tell of this user's home directory while a sandbox has one of its own; absent goes back
    /// to the floor's, or to the real one. For the whole process.
    pub set_home: unsafe extern "C" fn(home: Slice) -> i32,
    /// Adds a finding of a front end's. What `check_address` and `check_host` answer for a floor (its kind tells) is not
    /// recorded until it is noted like this, so that the front end can say more about the call site.
    pub floor_note: unsafe extern "C" fn(finding: *const Finding) -> i32,
    /// How many findings wait; cheap.
    pub floor_pending: unsafe extern "C" fn() -> u32,
    /// Takes the oldest finding that waits: 1, or 0 where there is none.
    pub floor_take: unsafe extern "C" fn(out: *mut Finding) -> i32,
    /// From now on (`is_on`), or no more, a folder tells which sandbox this process is in and at what time: for servers that
    /// are to follow its clocks. The folder lies on the file system of `/dev/shm`.
    pub show_clocks: unsafe extern "C" fn(folder: Slice, is_on: i32, error: *mut Text) -> i32,
    /// For `doctor`: one line per fact, written through `line`.
    pub describe:
        unsafe extern "C" fn(line: Option<unsafe extern "C" fn(*const u8, usize, *mut c_void)>, data: *mut c_void),
}

// SAFETY-free by construction: an `Api` is a table of function pointers and one pointer to static text.
#[allow(unsafe_code)]
// SAFETY: all fields are immutable for the life of the process, so sharing a reference between threads is sound.
unsafe impl Sync for Api {}
