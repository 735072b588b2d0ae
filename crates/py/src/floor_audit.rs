//! The floor's part of the audit hook: programs that start, files that are written, and the errors that refusals are.
//!
//! An event that does not concern the floor costs the comparison of a letter or two. What is refused is recorded before it is
//! raised, so that swallowing the error hides nothing.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_long, CStr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::BTreeMap;

use hermetic_abi::{finding, Finding};
use hermetic_floor::files::join;
use hermetic_floor::process::{Process, Push};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::{engine, floor, host};

/// Floors that are laid.
static LAID: AtomicUsize = AtomicUsize::new(0);
/// Files are watched.
static WATCHES: AtomicBool = AtomicBool::new(false);

static NETWORK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static PROCESS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What the interpreter opens files with when it is going to change them.
const WRITE_FLAGS: c_long = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) as c_long;

/// Folders and files that belong to tools and not to tests.
const TOOLS: [&str; 7] =
    ["__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".coverage", "htmlcov"];

/// Frames that are looked at in search of a call site.
const FRAMES_MAX: usize = 64;

pub fn begin() {
    LAID.fetch_add(1, Ordering::Relaxed);
}

pub fn end() {
    LAID.fetch_sub(1, Ordering::Relaxed);
}

pub fn is_laid() -> bool {
    LAID.load(Ordering::Relaxed) != 0
}

pub fn watch(is_on: bool) {
    WATCHES.store(is_on, Ordering::Relaxed);
}

/// The classes that refusals are raised as; those given first stay.
pub fn set_classes(network: &Bound<'_, PyAny>, process: &Bound<'_, PyAny>) {
    let py = network.py();
    let _ = NETWORK.set(py, network.clone().unbind());
    let _ = PROCESS.set(py, process.clone().unbind());
}

/// What an event tells.
#[derive(Clone, Copy)]
enum Act {
    /// A program starts: where its words, its folder and its variables stand among the arguments.
    Start { words: usize, folder: Option<usize>, variables: Option<usize> },
    /// A shell command.
    System,
    /// A path is changed; the second number is another one's place.
    Change(usize, Option<usize>),
}

const EVENTS: [(&[u8], Act); 13] = [
    (b"os.exec", Act::Start { words: 1, folder: None, variables: Some(2) }),
    (b"os.link", Act::Change(1, None)),
    (b"os.mkdir", Act::Change(0, None)),
    (b"os.posix_spawn", Act::Start { words: 1, folder: None, variables: Some(2) }),
    (b"os.remove", Act::Change(0, None)),
    (b"os.rename", Act::Change(0, Some(1))),
    (b"os.rmdir", Act::Change(0, None)),
    (b"os.spawn", Act::Start { words: 2, folder: None, variables: Some(3) }),
    (b"os.symlink", Act::Change(1, None)),
    (b"os.system", Act::System),
    (b"os.truncate", Act::Change(0, None)),
    (b"sqlite3.connect", Act::Change(0, None)),
    (b"subprocess.Popen", Act::Start { words: 1, folder: Some(2), variables: Some(3) }),
];

/// Whether an event can concern the floor: by its first letters, which exist, since names are at least that long.
///
/// # Safety
/// `event` is NUL-terminated.
#[inline(always)]
pub unsafe fn concerns(event: *const c_char) -> bool {
    if LAID.load(Ordering::Relaxed) == 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    let first = unsafe { event.read() } as u8;
    if first != b'o' && first != b's' {
        return false;
    }
    // SAFETY: the first letter is not the closing NUL.
    let second = unsafe { event.add(1) };
    // SAFETY: as above.
    let second = unsafe { second.read() } as u8;
    match (first, second) {
        (b'o', b'p') => WATCHES.load(Ordering::Relaxed),
        (b'o', b's') | (b's', b'u' | b'q') => true,
        _ => false,
    }
}

/// Handles an event that [`concerns`] the floor.
///
/// # Safety
/// `event` is NUL-terminated, `arguments` is null or a tuple, and the interpreter lock is held.
pub unsafe fn hook(event: *const c_char, arguments: *mut ffi::PyObject) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(event) }.to_bytes();
    if name == b"open" {
        // SAFETY: as above.
        if !unsafe { is_write(arguments) } {
            return 0;
        }
    } else if !EVENTS.iter().any(|(known, _)| *known == name) {
        return 0;
    }
    // SAFETY: audit events are raised while the interpreter lock is held.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the interpreter passes a tuple, borrowed for this call.
    let arguments = unsafe { Bound::from_borrowed_ptr_or_opt(py, arguments) };
    let Some(Ok(arguments)) = arguments.map(|arguments| arguments.cast_into::<PyTuple>()) else { return 0 };
    match handle(name, &arguments) {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// For interpreters that lack the C function.
pub fn handle_python(name: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    if LAID.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    if name == "open" {
        let flags = arguments.get_item(2).ok().and_then(|flags| flags.extract::<c_long>().ok()).unwrap_or(0);
        if !WATCHES.load(Ordering::Relaxed) || flags & WRITE_FLAGS == 0 {
            return Ok(());
        }
    }
    handle(name.as_bytes(), arguments)
}

/// Whether an `open` event asks for more than reading. Costs no object.
///
/// # Safety
/// As for [`hook`].
unsafe fn is_write(arguments: *mut ffi::PyObject) -> bool {
    if arguments.is_null() {
        return false;
    }
    // SAFETY: the interpreter passes a tuple; the item is borrowed.
    let flags = unsafe { ffi::PyTuple_GetItem(arguments, 2) };
    if flags.is_null() {
        // SAFETY: the lock is held; the index was beyond the end.
        unsafe { ffi::PyErr_Clear() };
        return false;
    }
    // SAFETY: the event passes an integer.
    let value = unsafe { ffi::PyLong_AsLong(flags) };
    if value == -1 {
        // SAFETY: the lock is held; this was no integer.
        unsafe { ffi::PyErr_Clear() };
        return false;
    }
    value & WRITE_FLAGS != 0
}

fn handle(name: &[u8], arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    if name == b"open" {
        note_change(arguments, 0);
        return Ok(());
    }
    let Some((_, act)) = EVENTS.iter().find(|(known, _)| *known == name) else { return Ok(()) };
    match *act {
        Act::Start { words, folder, variables } => judge_start(arguments, words, folder, variables),
        Act::System => judge_system(arguments),
        Act::Change(first, second) if WATCHES.load(Ordering::Relaxed) => {
            note_change(arguments, first);
            if let Some(second) = second {
                note_change(arguments, second);
            }
            Ok(())
        }
        Act::Change(..) => Ok(()),
    }
}

/// Text of a string, of bytes, or of a path object.
fn text(value: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(own) = value.cast::<PyString>() {
        return Some(own.to_string_lossy().into_owned());
    }
    if let Ok(own) = value.cast::<PyBytes>() {
        return Some(String::from_utf8_lossy(own.as_bytes()).into_owned());
    }
    let path = value.call_method0("__fspath__").ok()?;
    text(&path)
}

fn working_directory() -> String {
    std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The variables that a program would start with; None stands for this process's own.
fn variables(given: Option<&Bound<'_, PyAny>>) -> BTreeMap<String, String> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        let own = std::env::vars_os();
        return own.map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into())).collect();
    };
    let mut read = BTreeMap::new();
    let items = match given.cast::<PyDict>() {
        Ok(own) => Ok(own.items().into_any()),
        Err(_) => given.call_method0("items"),
    };
    for pair in items.and_then(|items| items.try_iter()).into_iter().flatten().flatten() {
        let name = pair.get_item(0).ok().and_then(|name| text(&name));
        let value = pair.get_item(1).ok().and_then(|value| text(&value));
        if let (Some(name), Some(value)) = (name, value) {
            read.insert(name, value);
        }
    }
    read
}

fn judge_start(
    arguments: &Bound<'_, PyTuple>,
    words: usize,
    folder: Option<usize>,
    environment: Option<usize>,
) -> PyResult<()> {
    let Ok(list) = arguments.get_item(words) else { return Ok(()) };
    let words: Vec<String> = list.try_iter()?.flatten().filter_map(|word| text(&word)).collect();
    // Nearly all programs are not git and mention it nowhere.
    if !words.iter().any(|word| word.contains("git")) {
        return Ok(());
    }
    let given = folder.and_then(|at| arguments.get_item(at).ok()).and_then(|folder| text(&folder));
    let folder = join(&working_directory(), given.as_deref().unwrap_or(""));
    let environment = environment.and_then(|at| arguments.get_item(at).ok());
    refuse_push(arguments.py(), Process { words, folder, variables: variables(environment.as_ref()) })
}

fn judge_system(arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let Some(command) = arguments.get_item(0).ok().and_then(|command| text(&command)) else { return Ok(()) };
    if !command.contains("git") {
        return Ok(());
    }
    let words = vec!["sh".to_owned(), "-c".to_owned(), command];
    refuse_push(arguments.py(), Process { words, folder: working_directory(), variables: variables(None) })
}

fn refuse_push(py: Python<'_>, process: Process) -> PyResult<()> {
    let Some(push) = floor::push_of(&process) else { return Ok(()) };
    let message = push_message(&push);
    let site = call_site(py);
    floor::note(finding::FLOOR_PROCESS, true, &without_password(&push.url), &message, &site);
    let Some(class) = PROCESS.get(py) else { return Ok(()) };
    Err(PyErr::from_value(class.bind(py).call1((message,))?))
}

fn push_message(push: &Push) -> String {
    let command: Vec<String> = push.command.iter().map(|word| without_password(word)).collect();
    let (remote, url) = (without_password(&push.remote), without_password(&push.url));
    format!(
        "stricttest refused a git push to another machine\n  command: {}\n  remote: {remote}\n  url: {url}\n  \
         directory: {}\nPush to a repository of the test's own on this machine, or test what would be pushed.",
        command.join(" "),
        push.folder
    )
}

/// An address without the password that it may hold.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split(':').next().unwrap_or("");
            let user = if login.contains(':') { format!("{user}:***") } else { user.to_owned() };
            format!("{scheme}://{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Notes a path that is changed outside of a test's folders.
fn note_change(arguments: &Bound<'_, PyTuple>, at: usize) {
    let Ok(value) = arguments.get_item(at) else { return };
    let Some(path) = text(&value) else { return };
    if path.is_empty() || path.starts_with(':') || path.starts_with("file:") {
        return;
    }
    let path = if path.starts_with('/') { join("/", &path) } else { join(&working_directory(), &path) };
    let is_machine = ["/dev", "/proc", "/sys"].iter().any(|top| hermetic_floor::files::is_within(&path, top));
    let is_tool = path.split('/').any(|part| TOOLS.iter().any(|tool| part.starts_with(tool)));
    if is_machine || is_tool || floor::is_writable(&path) {
        return;
    }
    let pending = PyErr::take(arguments.py());
    let site = call_site(arguments.py());
    floor::note(
        finding::FLOOR_WRITE,
        false,
        &path,
        &format!("{path} was changed outside of the test's directories"),
        &site,
    );
    if let Some(pending) = pending {
        pending.restore(arguments.py());
    }
}

/// The error for what the engine's floor refused, which is recorded here with the place that asked.
pub fn refusal(py: Python<'_>, found: &Finding) -> Option<PyErr> {
    use core::fmt::Write as _;
    if found.kind != finding::FLOOR_NETWORK {
        return None;
    }
    let mut found = found.clone();
    let _ = found.site.write_str(&call_site(py));
    if let Ok(api) = engine::api() {
        // SAFETY: the finding outlives the call.
        unsafe { (api.floor_note)(&raw const found) };
    }
    let class = NETWORK.get(py)?;
    let port = (found.port >= 0).then_some(found.port);
    let told = (found.message.as_str(), found.subject.as_str(), port, found.site.as_str());
    Some(match class.bind(py).call1(told) {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    })
}

/// The nearest frame that is the project's, else the nearest outside of the standard library: `file:line in function`.
fn call_site(py: Python<'_>) -> String {
    let mut frame = py.import("sys").and_then(|sys| sys.call_method1("_getframe", (0,))).ok();
    let mut second_best = String::new();
    for _ in 0..FRAMES_MAX {
        let Some(own) = frame.filter(|frame| !frame.is_none()) else { break };
        let code = own.getattr("f_code");
        let of =
            |name: &str| code.as_ref().ok().and_then(|code| code.getattr(name).ok()).and_then(|value| text(&value));
        let file = of("co_filename").unwrap_or_default();
        let line: u32 = own.getattr("f_lineno").and_then(|line| line.extract()).unwrap_or(0);
        let spelled = host::spell(&file);
        let site = || format!("{spelled}:{line} in {}", of("co_name").unwrap_or_default());
        let is_library = spelled.starts_with("python3/") || file.starts_with("<frozen");
        if !is_library {
            if !file.contains("/site-packages/") && !file.contains("/dist-packages/") {
                return site();
            }
            if second_best.is_empty() {
                second_best = site();
            }
        }
        frame = own.getattr("f_back").ok();
    }
    second_best
}
