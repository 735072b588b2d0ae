//! The events of a journal, as the engine writes and reads them.
//!
//! Thread 0 is the thread that entered the sandbox; others are announced by [`Event::ThreadStart`]. Site 0 means "place
//! unknown"; others are announced by [`Event::Site`] before their first use. `importing` marks what only the import
//! machinery asked for: it may or may not happen again.

use crate::record::Record;
use crate::schema;

/// The number, among its maker's children, of a thread that comes from a wider sandbox: a guest.
pub const GUEST: u32 = u32::MAX;

/// Defines an enumeration whose values have a number in the format and a name for people.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number,)* }

        impl $name {
            /// All values in the order of their numbers, which start at 0 and have no gap.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// The name that people and the readable form use.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            pub(crate) fn from_number(number: u64) -> Option<$name> {
                usize::try_from(number).ok().and_then(|index| Self::ALL.get(index)).copied()
            }
        }
    };
}

named! {
    /// A clock that can be read. The first three have the numbers of the ABI.
    Clock {
        /// Time of day, nanoseconds since the Unix epoch.
        Wall = 0 "wall",
        /// Never goes back; its origin is arbitrary.
        Monotonic = 1 "monotonic",
        /// Processor time of the process.
        Cpu = 2 "cpu",
        /// Processor time of the calling thread.
        ThreadCpu = 3 "thread-cpu",
        /// As monotonic, and goes on while the machine sleeps.
        Boot = 4 "boot",
    }
}

named! {
    /// Where random bytes were asked for.
    Source {
        Getrandom = 0 "getrandom",
        Getentropy = 1 "getentropy",
        Arc4random = 2 "arc4random",
        /// A read of /dev/urandom or /dev/random.
        Device = 3 "device",
        Openssl = 4 "openssl",
        /// Anything else, for example a generator that a front end draws for.
        Other = 5 "other",
    }
}

named! {
    /// What a thread waits for.
    WaitKind {
        Sleep = 0 "sleep",
        /// `poll`, `select`, `epoll_wait` and their relatives.
        Poll = 1 "poll",
        Lock = 2 "lock",
        Condition = 3 "condition",
        Semaphore = 4 "semaphore",
        Join = 5 "join",
        Signal = 6 "signal",
        Socket = 7 "socket",
        Other = 8 "other",
    }
}

named! {
    /// How it came that a thread goes on.
    Wake {
        /// It is its turn: its first one, or the first since it asked for the interpreter's lock.
        Turn = 0 "turn",
        /// Somebody ended its wait: posted, signalled, unlocked, ended.
        Woken = 1 "woken",
        /// The time that it waited for is up.
        TimedOut = 2 "timed-out",
        /// What only the kernel sees has come: input, the end of a child, a lock of a file.
        Kernel = 3 "kernel",
        /// A signal's handler ran.
        Interrupted = 4 "interrupted",
        /// It was told that nobody will ever end its wait.
        Deadlock = 5 "deadlock",
    }
}

named! {
    /// Why the clock moved.
    Reason {
        /// A sleep went by.
        Sleep = 0 "sleep",
        /// The test asked for it with `advance`.
        Advance = 1 "advance",
        /// The test set the wall clock.
        Set = 2 "set",
        /// No thread could run: on to the earliest deadline.
        Deadline = 3 "deadline",
        /// Something outside was pending, so the clock followed the real one.
        Real = 4 "real",
    }
}

/// One event. Texts and bytes are borrowed: from the caller when writing, from the journal when reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A clock was read; the answer in nanoseconds.
    Clock {
        thread: u32,
        site: u32,
        clock: Clock,
        value_ns: i64,
        importing: bool,
    },
    /// Random bytes were drawn.
    Entropy {
        thread: u32,
        site: u32,
        source: Source,
        bytes: &'a [u8],
        importing: bool,
    },
    /// A wait began; the time asked for in nanoseconds, or a negative number where there is no limit.
    Wait {
        thread: u32,
        site: u32,
        kind: WaitKind,
        duration_ns: i64,
    },
    /// So many calls that might have waited did not, since the thread's last wait: they found what they waited for, or were
    /// only asked to look. Stands before the next wait.
    Looks {
        thread: u32,
        count: u32,
    },
    /// Which of several descriptors a call of the thread found ready: bits by their places in its list. Stands after the wait
    /// or the looks before.
    Found {
        thread: u32,
        places: u64,
    },
    /// A call of the thread got so many bytes from a pipe or a socket.
    Got {
        thread: u32,
        site: u32,
        count: u32,
    },
    /// The clock moved by other means than a reading, to this wall time in nanoseconds since the epoch.
    Jump {
        thread: u32,
        site: u32,
        to_ns: i64,
        reason: Reason,
    },
    /// A thread joined: child number `ordinal` (from 0, or [`GUEST`]) of `parent`; `pedigree` names it across runs.
    ThreadStart {
        thread: u32,
        parent: u32,
        ordinal: u32,
        pedigree: u64,
    },
    ThreadEnd {
        thread: u32,
    },
    /// Describes a call site before its first use. `file` is relative to the project's root where it is below it.
    Site {
        id: u32,
        file: &'a str,
        function: &'a str,
        line: u32,
        importing: bool,
    },
    /// A directory was listed: its names in the order given, separated by NUL.
    Listing {
        thread: u32,
        site: u32,
        names: &'a [u8],
        importing: bool,
    },
    /// State of a generator, opaque to the engine.
    State {
        thread: u32,
        name: &'a str,
        bytes: &'a [u8],
    },
    /// The policy refused; `port` is -1 where there is none.
    Refusal {
        thread: u32,
        site: u32,
        subject: &'a str,
        port: i32,
    },
    /// A name was looked up: `status` is the code of `getaddrinfo`, `answers` numeric addresses, one a line.
    Lookup {
        thread: u32,
        site: u32,
        host: &'a str,
        port: i32,
        status: i32,
        answers: &'a str,
    },
    /// A child process ended: its number in order of its start (from 0) and its status as `wait` tells it.
    ChildExit {
        thread: u32,
        site: u32,
        child: u32,
        status: i32,
    },
    /// A remark of the engine or a front end.
    Note {
        thread: u32,
        text: &'a str,
    },
    /// A thread goes on, after its last [`Event::Wait`] or for the first time. Of threads that run interpreted code only one
    /// goes on at a time, so the order of these events is the order of their turns. `by` is the thread that ended the wait,
    /// or -1.
    Wake {
        thread: u32,
        how: Wake,
        by: i32,
    },
}

impl Event<'_> {
    /// The number of the kind in [`crate::schema::KINDS`].
    pub fn kind_number(&self) -> u8 {
        Record::from_event(self).kind
    }

    /// The name of the kind, as in the readable form.
    pub fn kind_name(&self) -> &'static str {
        schema::kind(self.kind_number()).map_or("", |kind| kind.name)
    }

    /// The thread that the event belongs to; none for [`Event::Site`].
    pub fn thread(&self) -> Option<u32> {
        match *self {
            Event::Clock { thread, .. }
            | Event::Entropy { thread, .. }
            | Event::Wait { thread, .. }
            | Event::Looks { thread, .. }
            | Event::Got { thread, .. }
            | Event::Found { thread, .. }
            | Event::Jump { thread, .. }
            | Event::ThreadStart { thread, .. }
            | Event::ThreadEnd { thread }
            | Event::Listing { thread, .. }
            | Event::State { thread, .. }
            | Event::Refusal { thread, .. }
            | Event::Lookup { thread, .. }
            | Event::ChildExit { thread, .. }
            | Event::Note { thread, .. }
            | Event::Wake { thread, .. } => Some(thread),
            Event::Site { .. } => None,
        }
    }

    /// The call site; none for events that have no place of their own.
    pub fn site(&self) -> Option<u32> {
        match *self {
            Event::Clock { site, .. }
            | Event::Entropy { site, .. }
            | Event::Wait { site, .. }
            | Event::Got { site, .. }
            | Event::Jump { site, .. }
            | Event::Listing { site, .. }
            | Event::Refusal { site, .. }
            | Event::Lookup { site, .. }
            | Event::ChildExit { site, .. } => Some(site),
            _ => None,
        }
    }
}
