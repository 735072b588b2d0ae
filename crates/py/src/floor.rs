//! The floor for Python: settings, the environment's plan, and the doors to the engine's floor. Decisions are `hermetic_floor`'s.

#![allow(unsafe_code)]

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::RwLock;

use hermetic_abi::{finding, flag, Finding as Raw, FloorConfig, Text};
use hermetic_floor::files::{Files, Kind};
use hermetic_floor::process::{judge, Process, Push};
use hermetic_floor::settings::{self, Settings, Syntax};
use hermetic_floor::{environment, place};
use hermetic_policy::{Policy, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::findings::Finding;
use crate::{audit, engine, errors, floor_audit, host};

const OWNER: &str = "stricttest";
const HINT_HOST: &str =
    "an entry in stricttest_socket_allowlist, or stricttest_loopback = \"allow\" for this machine, would allow it";
const HINT_UNIX: &str = "an entry in stricttest_unix_socket_allowlist would allow it";

/// The file system of this machine.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn kind(&self, path: &str) -> Kind {
        match std::fs::metadata(path) {
            Ok(facts) if facts.is_dir() => Kind::Folder,
            Ok(_) => Kind::File,
            Err(_) => Kind::Missing,
        }
    }

    fn resolve(&self, path: &str) -> String {
        match std::fs::canonicalize(path) {
            Ok(real) => real.to_string_lossy().into_owned(),
            Err(_) => path.to_owned(),
        }
    }
}

/// Everything is real while this exists.
pub struct Real;

impl Real {
    pub fn begin() -> Real {
        if let Ok(api) = engine::api() {
            // SAFETY: no arguments; ended by the destructor.
            unsafe { (api.real_begin)() };
        }
        Real
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Ok(api) = engine::api() {
            // SAFETY: no arguments; begun by the constructor.
            unsafe { (api.real_end)() };
        }
    }
}

fn raw(values: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, settings::Raw>> {
    let mut given = BTreeMap::new();
    for (name, value) in values {
        let value = match value.cast::<PyString>() {
            Ok(text) => settings::Raw::Text(text.to_string_lossy().into_owned()),
            Err(_) => settings::Raw::List(value.extract()?),
        };
        given.insert(name.extract()?, value);
    }
    Ok(given)
}

fn read_or_default(values: &Bound<'_, PyDict>) -> PyResult<Settings> {
    Ok(settings::read(&raw(values)?).unwrap_or_default())
}

/// Reads settings, by names without their prefix: `(values, problems, missing names, block to paste)`. The values are the most
/// restrictive ones where there is a problem.
#[pyfunction]
pub fn floor_settings<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyDict>,
    file: Option<&str>,
    is_native: bool,
) -> PyResult<SettingParts<'py>> {
    let given = raw(values)?;
    let missing = settings::missing(&given);
    let block = settings::block(&missing, Syntax::of(file, is_native));
    let (read, problems) = match settings::read(&given) {
        Ok(read) => (read, Vec::new()),
        Err(problems) => (Settings::default(), problems),
    };
    let told = PyDict::new(py);
    told.set_item("sockets", read.sockets)?;
    told.set_item("socket_allowlist", read.socket_allowlist)?;
    told.set_item("unix_socket_allowlist", read.unix_socket_allowlist)?;
    told.set_item("loopback", read.loopback)?;
    told.set_item("sandbox_required", read.sandbox_required)?;
    told.set_item("threshold", read.threshold)?;
    told.set_item("sandbox_env", read.sandbox_env)?;
    told.set_item("runner_command", read.runner_command)?;
    told.set_item("tmp_prefix", read.tmp_prefix)?;
    told.set_item("git_user_name", read.git_user_name)?;
    told.set_item("git_user_email", read.git_user_email)?;
    told.set_item("preserve", read.preserve)?;
    told.set_item("keep", read.keep)?;
    told.set_item("leaks", read.leaks)?;
    told.set_item("import_cwd", read.import_cwd)?;
    Ok((told, problems, missing, block))
}

type SettingParts<'py> = (Bound<'py, PyDict>, Vec<String>, Vec<&'static str>, String);
type PlanParts =
    (Vec<(String, Option<String>, &'static str, &'static str)>, Vec<(String, bool)>, Vec<(String, String)>);

/// Plans the environment: `(changes, folders, files)`. A change is `(name, value or None, cause, reason)`.
#[pyfunction]
pub fn floor_plan(variables: BTreeMap<String, String>, root: &str, values: &Bound<'_, PyDict>) -> PyResult<PlanParts> {
    let variables: Vec<(String, String)> = variables.into_iter().collect();
    let plan = environment::plan(&variables, root, &read_or_default(values)?);
    let changes =
        plan.changes.into_iter().map(|change| (change.name, change.value, change.cause.name(), change.reason));
    let folders = plan.folders.into_iter().map(|folder| (folder.path, folder.is_private));
    Ok((changes.collect(), folders.collect(), plan.files))
}

/// Why a folder is no place for temporary files: `("project" or "work-tree", its top)`, or None.
#[pyfunction]
pub fn floor_temp_trouble(folder: &str, project: &str) -> Option<(&'static str, String)> {
    let _real = Real::begin();
    match place::judge(folder, project, &Disk)? {
        place::Trouble::Project(path) => Some(("project", path)),
        place::Trouble::WorkTree(path) => Some(("work-tree", path)),
    }
}

/// Whether a run of that many tests is refused outside of the sandbox runner.
#[pyfunction]
pub fn floor_is_bare_run_refused(values: &Bound<'_, PyDict>, tests: u64, handshake: Option<&str>) -> PyResult<bool> {
    Ok(settings::is_bare_run_refused(&read_or_default(values)?, tests, handshake))
}

/// Lays a floor on the network of this process; returns its id. `home` is what `pwd` tells of this user, `spool` the file that
/// forked children add their findings to, `root` the folder that call sites drop from their file names.
#[pyfunction]
#[pyo3(signature = (loopback, entries, *, home=None, spool=None, root=None))]
pub fn floor_enter(
    py: Python<'_>,
    loopback: bool,
    entries: Vec<String>,
    home: Option<&str>,
    spool: Option<&str>,
    root: Option<&str>,
) -> PyResult<i64> {
    host::prepare(py)?;
    let api = engine::attached().map_err(|text| errors::sandbox(py, text))?;
    if let Some(root) = root {
        host::set_root(root);
    }
    let allow = entries.join("\n");
    let config = FloorConfig {
        size: core::mem::size_of::<FloorConfig>() as u32,
        flags: if loopback { flag::ALLOW_LOOPBACK } else { 0 },
        allow: engine::slice(allow.as_bytes()),
        owner: engine::slice(OWNER.as_bytes()),
        hint_host: engine::slice(HINT_HOST.as_bytes()),
        hint_unix: engine::slice(HINT_UNIX.as_bytes()),
        home: engine::slice_or_absent(home.map(str::as_bytes)),
        spool: engine::slice_or_absent(spool.map(str::as_bytes)),
    };
    let mut error = Text::new();
    // SAFETY: the configuration, what it points to, and the text outlive the call.
    let id = unsafe { (api.floor_enter)(&raw const config, &raw mut error) };
    if id <= 0 {
        return Err(errors::new(py, "OptionError", error.as_str()));
    }
    audit::begin(py)?;
    floor_audit::begin();
    Ok(id)
}

/// Takes a floor away.
#[pyfunction]
pub fn floor_leave(py: Python<'_>, id: i64) -> PyResult<()> {
    let api = engine::api().map_err(|text| errors::sandbox(py, text))?;
    // SAFETY: a plain value.
    if unsafe { (api.floor_leave)(id) } < 0 {
        return Err(errors::sandbox(py, &format!("there is no floor {id}: it was taken away already")));
    }
    floor_audit::end();
    audit::end();
    Ok(())
}

/// Adds an entry to every floor: a helper socket of the harness.
#[pyfunction]
pub fn floor_allow(py: Python<'_>, entry: &str) -> PyResult<()> {
    let api = engine::api().map_err(|text| errors::sandbox(py, text))?;
    let mut error = Text::new();
    // SAFETY: both texts outlive the call.
    if unsafe { (api.floor_allow)(engine::slice(entry.as_bytes()), &raw mut error) } < 0 {
        return Err(errors::new(py, "OptionError", error.as_str()));
    }
    Ok(())
}

/// The home directory that `pwd` tells while a sandbox has one of its own; None goes back to the floor's, or to the real one.
#[pyfunction]
pub fn set_home(home: Option<&str>) {
    if let Ok(api) = engine::attached() {
        // SAFETY: the text outlives the call.
        unsafe { (api.set_home)(engine::slice(home.unwrap_or("").as_bytes())) };
    }
}

/// How many findings wait.
#[pyfunction]
pub fn floor_pending() -> u32 {
    // SAFETY: no arguments.
    engine::api().map_or(0, |api| unsafe { (api.floor_pending)() })
}

/// Takes all findings that wait.
#[pyfunction]
pub fn floor_take() -> Vec<Finding> {
    let Ok(api) = engine::api() else { return Vec::new() };
    let mut found = Raw::BLANK;
    // SAFETY: `found` is writable.
    core::iter::from_fn(|| (unsafe { (api.floor_take)(&raw mut found) } == 1).then(|| Finding::from(&found))).collect()
}

/// Records a finding of a program: something that git was seen to do.
#[pyfunction]
pub fn floor_note_process(subject: &str, message: &str, site: &str) {
    note(finding::FLOOR_PROCESS, true, subject, message, site);
}

/// Records a finding.
pub fn note(kind: u32, is_fatal: bool, subject: &str, message: &str, site: &str) {
    use core::fmt::Write as _;
    let Ok(api) = engine::api() else { return };
    let mut found: Raw = Raw::BLANK;
    (found.kind, found.count, found.fatal) = (kind, 1, u32::from(is_fatal));
    for (place, text) in [(&mut found.subject, subject), (&mut found.message, message), (&mut found.site, site)] {
        let _ = place.write_str(text);
    }
    // SAFETY: the finding outlives the call.
    unsafe { (api.floor_note)(&raw const found) };
}

/// The push to another machine that a program would make: `(command, remote, url, folder)`, or None.
#[pyfunction]
pub fn floor_push(
    words: Vec<String>,
    folder: String,
    variables: BTreeMap<String, String>,
) -> Option<(Vec<String>, String, String, String)> {
    let push = push_of(&Process { words, folder, variables })?;
    Some((push.command, push.remote, push.url, push.folder))
}

/// The push of a program, its files read from this machine.
pub fn push_of(process: &Process) -> Option<Push> {
    let _real = Real::begin();
    judge(process, &Disk)
}

/// Whether a stance allows a host: by name or address, at a port or (None) at some port.
#[pyfunction]
#[pyo3(signature = (loopback, entries, host, port=None))]
pub fn floor_decide(
    py: Python<'_>,
    loopback: bool,
    entries: Vec<String>,
    host: &str,
    port: Option<u16>,
) -> PyResult<bool> {
    let mut policy = Policy::new(loopback, false);
    for entry in &entries {
        policy.add(entry).map_err(|error| errors::new(py, "OptionError", &error.to_string()))?;
    }
    let target = match host.parse::<IpAddr>() {
        Ok(ip) => Target::Address { ip, port },
        Err(_) => Target::Name { host: host.as_bytes(), port },
    };
    Ok(policy.decide(&target).is_allowed())
}

/// The classes that refusals are raised as; those given first stay.
#[pyfunction]
pub fn floor_classes(network: &Bound<'_, PyAny>, process: &Bound<'_, PyAny>) {
    floor_audit::set_classes(network, process);
}

/// Folders below which writing is nobody's business; None ends the watch on files.
static WRITABLE: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Watches what is written outside of these folders, until it is called with None.
#[pyfunction]
pub fn floor_watch(folders: Option<&Bound<'_, PyList>>) -> PyResult<()> {
    let list = match folders {
        Some(folders) => folders.extract()?,
        None => Vec::new(),
    };
    floor_audit::watch(folders.is_some());
    *WRITABLE.write().unwrap_or_else(std::sync::PoisonError::into_inner) = list;
    Ok(())
}

/// Pauses or continues the watch on files, without touching its folders.
#[pyfunction]
pub fn floor_watch_now(is_on: bool) {
    floor_audit::watch(is_on);
}

/// Whether a path lies below one of the watch's folders.
pub fn is_writable(path: &str) -> bool {
    let folders = WRITABLE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    folders.iter().any(|folder| hermetic_floor::files::is_within(path, folder))
}
