//! What the kernel says of a thread: whether it sleeps, and how often it has run. Read from `/proc`, without allocation.

use core::fmt::Write;

/// Bytes on the stack that can be written to like text.
struct Line {
    bytes: [u8; Line::CAPACITY],
    len: usize,
}

impl Line {
    const CAPACITY: usize = 4096;

    fn new() -> Line {
        Line { bytes: [0; Line::CAPACITY], len: 0 }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        // One byte stays for the NUL of a path.
        let place = self.bytes[..Line::CAPACITY - 1].get_mut(self.len..end).ok_or(core::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// The calling thread's number for the kernel.
pub fn own_id() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// As [`own_id`], asked of the kernel once per thread. A child of vfork, which shares its parent's memory, gets the parent's.
#[inline]
pub fn known_id() -> i32 {
    let local = crate::tls::local();
    // SAFETY: the record belongs to this thread (H2).
    let local = unsafe { &mut *local };
    if local.kernel_id == 0 {
        local.kernel_id = own_id();
    }
    local.kernel_id
}

/// In a forked child: the calling thread is another one for the kernel.
pub fn forget_known_id() {
    // SAFETY: the record belongs to this thread (H2).
    unsafe { (*crate::tls::local()).kernel_id = 0 };
}

/// Whether the kernel has the thread asleep, waiting for an event. False also for one that is gone, stopped, or waits for a
/// disk.
pub fn is_asleep(process: i32, thread: i32) -> bool {
    let stat = read(process, thread, "stat");
    // The name in parentheses may contain anything; the state follows the last one.
    let after = stat.text().iter().rposition(|&byte| byte == b')');
    after.and_then(|at| stat.text().get(at + 2)) == Some(&b'S')
}

/// Whether any signal is pending for the calling thread.
pub fn has_pending_signals() -> bool {
    let mut none = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: valid for writing.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: an empty set.
    has_pending_signal(&unsafe { none.assume_init() })
}

/// Whether a signal is pending for the calling thread that the mask lets through.
pub fn has_pending_signal(mask: &libc::sigset_t) -> bool {
    let mut pending = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: valid for writing.
    if unsafe { libc::sigpending(pending.as_mut_ptr()) } != 0 {
        return false;
    }
    (1..=libc::SIGRTMAX()).any(|signal| {
        // SAFETY: filled by the call above.
        let is_pending = unsafe { libc::sigismember(pending.as_ptr(), signal) } == 1;
        // SAFETY: a valid set.
        is_pending && unsafe { libc::sigismember(mask, signal) } == 0
    })
}

/// Whether there is such a thread. One that has ended but not been collected counts.
pub fn exists(process: i32, thread: i32) -> bool {
    // SAFETY: signal 0 only asks.
    let error = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    error == 0 || crate::clock::errno() != libc::ESRCH
}

/// How often the thread was put on a processor; equal numbers mean that it has not run in between.
pub fn slices(process: i32, thread: i32) -> Option<u64> {
    schedule(process, thread, 2)
}

/// Nanoseconds that the thread has had a processor.
pub fn computed_ns(process: i32, thread: i32) -> Option<u64> {
    schedule(process, thread, 0)
}

/// A number of the thread's `schedstat`: time on a processor, time in the queue for one, slices.
fn schedule(process: i32, thread: i32, field: usize) -> Option<u64> {
    let stat = read(process, thread, "schedstat");
    let text = core::str::from_utf8(stat.text()).ok()?;
    text.split_ascii_whitespace().nth(field)?.parse().ok()
}

/// Whether a process is there and has not ended (a zombie has).
pub fn is_alive(process: i32) -> bool {
    let stat = read(process, process, "stat");
    let after = stat.text().iter().rposition(|&byte| byte == b')');
    match after.and_then(|at| stat.text().get(at + 2)) {
        None => false,
        Some(state) => !matches!(state, b'Z' | b'X'),
    }
}

/// What the kernel calls a process: its program's file name, cut after fifteen bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Name {
    bytes: [u8; Name::CAPACITY],
    len: u8,
}

impl Name {
    const CAPACITY: usize = 15;

    pub fn new(text: &[u8]) -> Name {
        let mut name = Name::default();
        let len = text.len().min(Name::CAPACITY);
        name.bytes[..len].copy_from_slice(&text[..len]);
        name.len = len as u8;
        name
    }

    /// The name as far as it is text; `?` where there is none.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.len).min(Name::CAPACITY)];
        let text = match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        if text.is_empty() {
            "?"
        } else {
            text
        }
    }
}

/// The name of a process; an empty one where it is gone.
pub fn name(process: i32) -> Name {
    let stat = read(process, process, "stat");
    let text = stat.text();
    let begin = text.iter().position(|&byte| byte == b'(');
    let end = text.iter().rposition(|&byte| byte == b')');
    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => Name::new(&text[begin + 1..end]),
        _ => Name::default(),
    }
}

/// Where a process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub parent: i32,
    /// When it began, in the kernel's ticks: together with its number it names a process for good.
    pub started: u64,
}

/// The parent and the start of a process; none where it is gone.
pub fn origin(process: i32) -> Option<Origin> {
    let stat = read(process, process, "stat");
    let text = stat.text();
    let after = text.iter().rposition(|&byte| byte == b')')?;
    // Fields 4 and 22 of the whole line; the state, right after the name, is the third.
    let mut fields = core::str::from_utf8(&text[after + 1..]).ok()?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Origin { parent, started })
}

/// How many threads a process has.
pub fn threads(process: i32) -> Option<u64> {
    let stat = read(process, process, "stat");
    let text = stat.text();
    let after = text.iter().rposition(|&byte| byte == b')')?;
    // Field 20 of the whole line is the 18th after the name.
    core::str::from_utf8(&text[after + 1..]).ok()?.split_ascii_whitespace().nth(17)?.parse().ok()
}

/// What a thread of this process waits for in the kernel: the number of its system call and the call's six arguments. None for
/// one that runs or is gone, and where the kernel does not tell.
pub fn system_call(thread: i32) -> Option<[u64; 7]> {
    // SAFETY: no preconditions.
    let call = read(unsafe { libc::getpid() }, thread, "syscall");
    let mut words = core::str::from_utf8(call.text()).ok()?.split_ascii_whitespace();
    let mut told = [words.next()?.parse().ok()?, 0, 0, 0, 0, 0, 0];
    for place in &mut told[1..] {
        *place = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(told)
}

/// Calls `visit` for each child that a thread of the process has started and that was not waited for yet.
pub fn for_each_child(process: i32, mut visit: impl FnMut(i32)) {
    for_each_thread(process, |thread| visit_children(process, thread, &mut visit));
}

/// Calls `visit` for each thread of the process.
pub fn for_each_thread(process: i32, mut visit: impl FnMut(i32)) {
    let mut path = Line::new();
    if write!(path, "/proc/{process}/task").is_err() {
        return;
    }
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a NUL, which `Line` keeps behind its text.
    let folder = unsafe { libc::open(path.bytes.as_ptr().cast(), flags) };
    if folder < 0 {
        return;
    }
    let mut buffer = [0u64; 512];
    loop {
        let (data, len) = (buffer.as_mut_ptr(), size_of_val(&buffer));
        // SAFETY: the buffer is as long as it says.
        let got = unsafe { libc::syscall(libc::SYS_getdents64, folder, data, len) };
        let Ok(got @ 1..) = usize::try_from(got) else { break };
        // SAFETY: the kernel wrote `got` bytes of them.
        let bytes = unsafe { core::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), got) };
        for_each_entry(bytes, &mut visit);
    }
    // SAFETY: opened above.
    unsafe { libc::close(folder) };
}

/// Offsets in the kernel's `linux_dirent64`: length of the record, and the name.
const RECORD_LEN: usize = 16;
const NAME: usize = 19;

fn for_each_entry(mut bytes: &[u8], mut visit: impl FnMut(i32)) {
    while bytes.len() > NAME {
        let len = usize::from(u16::from_ne_bytes([bytes[RECORD_LEN], bytes[RECORD_LEN + 1]]));
        let Some(record) = bytes.get(..len) else { return };
        let name = record[NAME..].split(|&byte| byte == 0).next().unwrap_or_default();
        if let Some(thread) = core::str::from_utf8(name).ok().and_then(|name| name.parse().ok()) {
            visit(thread);
        }
        bytes = &bytes[len..];
    }
}

fn visit_children(process: i32, thread: i32, visit: &mut impl FnMut(i32)) {
    let mut path = Line::new();
    if write!(path, "/proc/{process}/task/{thread}/children").is_err() {
        return;
    }
    // SAFETY: the path ends with a NUL, which `Line` keeps behind its text.
    let fd = unsafe { libc::open(path.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return;
    }
    let mut part = [0u8; 512];
    // A number may lie across two parts; each is followed by a space.
    let mut child = 0i32;
    loop {
        // SAFETY: the buffer is as long as it says.
        let got = unsafe { libc::read(fd, part.as_mut_ptr().cast(), part.len()) };
        let Ok(got @ 1..) = usize::try_from(got) else { break };
        for &byte in &part[..got] {
            match byte {
                b'0'..=b'9' => child = child.wrapping_mul(10).wrapping_add(i32::from(byte - b'0')),
                _ if child != 0 => visit(core::mem::take(&mut child)),
                _ => {}
            }
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
}

/// A descriptor in an epoll set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpollTarget {
    pub fd: i32,
    /// What is waited for, as `epoll_ctl` was told.
    pub events: u32,
    /// What the program is told.
    pub data: u64,
}

/// The descriptors in an epoll set; how many there are, at most as many as fit. None if the descriptor is no epoll set.
///
/// The kernel lists them as `proc(5)` says: `tfd:` a number, `events:` and `data:` hexadecimal ones.
pub fn epoll_targets(fd: i32, out: &mut [EpollTarget]) -> Option<usize> {
    let mut path = Line::new();
    write!(path, "/proc/self/fdinfo/{fd}").ok()?;
    let info = read_path(&path);
    let text = core::str::from_utf8(info.text()).ok()?;
    let targets = text.lines().filter_map(|line| {
        // A number as wide as its column follows its name without a blank.
        let word = |name| line.split_once(name)?.1.split_ascii_whitespace().next();
        let events = u32::from_str_radix(word("events:")?, 16).ok()?;
        let data = u64::from_str_radix(word("data:")?, 16).ok()?;
        Some(EpollTarget { fd: word("tfd:")?.parse().ok()?, events, data })
    });
    let mut count = 0;
    for (place, target) in out.iter_mut().zip(targets) {
        *place = target;
        count += 1;
    }
    (count > 0).then_some(count)
}

fn read(process: i32, thread: i32, file: &str) -> Line {
    let mut path = Line::new();
    match write!(path, "/proc/{process}/task/{thread}/{file}") {
        Ok(()) => read_path(&path),
        Err(_) => Line::new(),
    }
}

fn read_path(path: &Line) -> Line {
    let mut content = Line::new();
    // SAFETY: the path ends with a NUL, which `Line` keeps behind its text.
    let fd = unsafe { libc::open(path.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return content;
    }
    // SAFETY: the buffer is as long as it says.
    let got = unsafe { libc::read(fd, content.bytes.as_mut_ptr().cast(), content.bytes.len()) };
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    content.len = usize::try_from(got).unwrap_or(0);
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn children_and_epoll_sets_are_listed() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let mut seen = Vec::new();
        for_each_child(std::process::id() as i32, |process| seen.push(process));
        assert!(seen.contains(&(child.id() as i32)));
        assert_eq!(name(i32::MAX).as_str(), "?");
        assert_eq!(Name::new(b"a name of many bytes").as_str(), "a name of many ");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        let mut after = Vec::new();
        for_each_child(std::process::id() as i32, |process| after.push(process));
        assert!(!after.contains(&(child.id() as i32)));
        assert_eq!(epoll_targets(1, &mut [EpollTarget::default(); 4]), None);
    }

    #[test]
    fn targets_of_an_epoll_set_are_read_whatever_their_numbers_are() {
        // SAFETY: makes a descriptor.
        let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let wanted = [
            EpollTarget { fd: reader.as_raw_fd(), events: (libc::EPOLLIN | libc::EPOLLET) as u32, data: u64::MAX },
            EpollTarget { fd: writer.as_raw_fd(), events: libc::EPOLLOUT as u32, data: 7 },
        ];
        for target in wanted {
            let mut event = libc::epoll_event { events: target.events, u64: target.data };
            // SAFETY: the event is valid.
            assert_eq!(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, target.fd, &mut event) }, 0);
        }
        let mut found = [EpollTarget::default(); 4];
        assert_eq!(epoll_targets(set, &mut found), Some(2));
        // The kernel adds what is always told.
        found.iter_mut().for_each(|target| target.events &= !(libc::EPOLLERR | libc::EPOLLHUP) as u32);
        found[..2].sort_by_key(|target| target.fd);
        assert_eq!(found[..2], wanted);
        // SAFETY: made above.
        unsafe { libc::close(set) };
    }

    #[test]
    fn a_running_thread_is_not_asleep_and_a_waiting_one_is() {
        let process = std::process::id() as i32;
        assert!(!is_asleep(process, own_id()));
        assert!(is_alive(process));
        assert!(slices(process, own_id()).is_some());
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            tell.send(own_id()).expect("heard");
            let _ = receive.recv();
        });
        let thread = told.recv().expect("told");
        while !is_asleep(process, thread) {
            std::thread::yield_now();
        }
        drop(send);
        waiter.join().expect("it ends");
        assert!(!is_asleep(process, thread));
    }

    #[test]
    fn a_thread_exists_until_the_kernel_has_ended_it() {
        let process = std::process::id() as i32;
        assert!(exists(process, own_id()));
        let thread = std::thread::spawn(own_id).join().expect("it ends");
        while exists(process, thread) {
            std::thread::yield_now();
        }
        assert!(!is_asleep(process, thread));
    }
}
