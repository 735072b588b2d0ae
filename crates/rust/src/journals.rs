//! Journal files: what is written in front of one, where it lies, and what becomes of it.
//!
//! A directory of journals is shared with the pytest plugin and follows its names: while tests run, a process writes one scratch
//! file, `unfinished-<run>-<process>.journal`, locked as long as the process lives, and used again for each test. A failing
//! attempt becomes `<test>__<hash>__<run>-a<attempt>.journal`. What a crashed process left is named by the next one that records.

use crate::engine;
use crate::error::Error;
use crate::real;
use crate::settings::{Network, Settings};
use hermetic_journal::{Form, Head, Journal};
use hermetic_model::digest::sha256;
use serde_json::{json, Map, Value};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::time::SystemTime;

const SLUG_LEN_MAX: usize = 80;
/// More files of one name than this in one run are not a matter of retries.
const ATTEMPTS_MAX: u32 = 10_000;

/// Of what a journal is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    pub test: Option<&'a str>,
    /// The package's folder.
    pub folder: Option<&'a str>,
}

/// The head of a journal that begins now.
pub fn head(settings: &Settings, seed: i128, subject: &Subject<'_>) -> Result<Vec<u8>, Error> {
    let now_ns = match &settings.now {
        Some(when) => when.ns()?,
        None => real::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64),
    };
    let mut env: Vec<String> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    env.sort_unstable();
    let created = real::now().duration_since(SystemTime::UNIX_EPOCH);
    let head = Head {
        hermetic: env!("CARGO_PKG_VERSION").to_owned(),
        test: subject.test.map(str::to_owned),
        created_at_ns: created.map_or(0, |since| since.as_nanos() as i64),
        config: config(settings, seed, now_ns),
        fingerprint: fingerprint(subject.folder).clone(),
        root: subject.folder.map(str::to_owned),
        env,
        ..Head::default()
    };
    Ok(head.to_text().into_bytes())
}

fn config(settings: &Settings, seed: i128, now_ns: i64) -> Map<String, Value> {
    let network = match &settings.network {
        Network::Block => json!("block"),
        Network::Off => json!("off"),
        Network::Allow(entries) => json!(entries),
    };
    let pinned = [("now", settings.now.is_some()), ("seed", settings.seed.is_some())];
    let pinned: Vec<&str> = pinned.iter().filter(|(_, is_pinned)| *is_pinned).map(|(name, _)| *name).collect();
    let rows = [
        ("now", json!(now_ns)),
        ("tick", json!(settings.tick)),
        ("clock", json!(settings.clock.name())),
        ("rng", json!(settings.rng.name())),
        ("network", network),
        ("allow_loopback", json!(settings.allow_loopback)),
        ("allow_unix", json!(settings.allow_unix)),
        ("spin_limit", json!(settings.spin_limit)),
        ("order", json!(settings.order().name())),
        ("monotonic", json!(settings.monotonic.name())),
        ("network_strict", json!(settings.network_strict)),
        ("strict_replay", json!(settings.strict_replay)),
        ("inherit", json!(settings.inherit.name())),
        ("seed", json!(seed.to_string())),
        ("pinned", json!(pinned)),
    ];
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Facts about machine and checkout, collected once.
pub fn fingerprint(folder: Option<&str>) -> &'static Map<String, Value> {
    static FACTS: OnceLock<Map<String, Value>> = OnceLock::new();
    FACTS.get_or_init(|| real::scope(|| collect(folder)))
}

fn collect(folder: Option<&str>) -> Map<String, Value> {
    let kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let platform = format!("{}-{}", kernel("ostype").trim(), kernel("osrelease").trim());
    let facts = [
        ("implementation", json!("rust")),
        ("platform", json!(platform)),
        ("machine", json!(std::env::consts::ARCH)),
        ("hostname", json!(kernel("hostname").trim())),
        ("cpu_count", json!(std::thread::available_parallelism().map_or(0, usize::from))),
        ("tz_env", json!(std::env::var("TZ").ok())),
        ("git_revision", json!(folder.and_then(revision))),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn revision(folder: &str) -> Option<String> {
    let mut git = Command::new("git");
    let told = git.args(["rev-parse", "HEAD"]).current_dir(folder).env("GIT_TERMINAL_PROMPT", "0").output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    (told.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Where a journal is written while it grows, and what it becomes.
#[derive(Debug)]
pub struct Files {
    pub scratch: PathBuf,
    pub target: PathBuf,
}

/// The files for a journal that a program asked for by its path.
pub fn scratch_beside(path: &Path) -> Result<Files, Error> {
    /// Never a name that this process has used before: the engine keeps the last one mapped.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let target = std::path::absolute(path).map_err(|error| cannot("write", path, &error))?;
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(|error| cannot("write", path, &error))?;
    }
    let mut scratch = target.clone().into_os_string();
    scratch.push(format!(".part-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    Ok(Files { scratch: scratch.into(), target })
}

/// Finishes a raw journal and puts it at `target` in one step, in the form that the name asks for.
pub fn finish(raw: &[u8], target: &Path) -> Result<(), Error> {
    let shown = target.display();
    let bytes = hermetic_journal::finish(raw, Form::from_path(target))
        .map_err(|error| Error::Journal(format!("cannot finish the journal {shown}: {error}")))?;
    let mut part = target.as_os_str().to_owned();
    part.push(format!(".new-{}", std::process::id()));
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, target))
        .inspect_err(|_| drop(fs::remove_file(&part)))
        .map_err(|error| cannot("write", target, &error))
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> Error {
    Error::Journal(format!("cannot {act} the journal {}: {error}", path.display()))
}

/// The directory that this process records into.
#[derive(Debug)]
pub struct Directory {
    folder: PathBuf,
    run: String,
    /// Where the sandboxes of this process write.
    pub scratch: PathBuf,
    /// Open, and so locked, as long as the process lives.
    file: File,
}

impl Directory {
    /// The directory, made and claimed by the first test that records.
    pub fn prepare(folder: &Path) -> Result<&'static Directory, Error> {
        static DIRECTORY: OnceLock<Result<Directory, String>> = OnceLock::new();
        let made = DIRECTORY.get_or_init(|| Directory::make(folder).map_err(|error| error.to_string()));
        made.as_ref().map_err(|text| Error::Journal(format!("cannot record into {}: {text}", folder.display())))
    }

    fn make(folder: &Path) -> io::Result<Directory> {
        fs::create_dir_all(folder)?;
        // One process at a time looks after a directory: between making a scratch file and locking it, it looks like one that a
        // crashed process left. The lock is on the directory itself and leaves no file.
        let exclusive = File::open(folder)?;
        engine::lock_file(&exclusive);
        recover(folder);
        let run = run_name();
        let scratch = folder.join(format!("unfinished-{run}-{}.journal", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&scratch)?;
        if !engine::try_lock_file(&file) {
            return Err(io::Error::other(format!("{} belongs to another process", scratch.display())));
        }
        engine::at_exit(remove_scratch);
        let _ = SCRATCH.set((std::process::id(), scratch.clone()));
        Ok(Directory { folder: folder.to_owned(), run, scratch, file })
    }

    /// Keeps the journal of a failed attempt. Returns where.
    pub fn keep(&self, raw: &[u8], test: &str) -> Result<PathBuf, Error> {
        let path = claim(&self.folder, test, &self.run).map_err(|error| cannot("write", &self.folder, &error))?;
        finish(raw, &path).inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(path)
    }

    /// Forgets that of any other: without its first bytes it is no journal, so a crash before the next test leaves nothing to
    /// take for a failure.
    pub fn forget(&self) {
        let _ = self.file.write_all_at(&[0; 8], 0);
    }
}

static SCRATCH: OnceLock<(u32, PathBuf)> = OnceLock::new();

extern "C" fn remove_scratch() {
    // A forked child ends here as well, and the file is not its own.
    if let Some((process, path)) = SCRATCH.get() {
        if *process == std::process::id() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Eight digits for this run; all processes of a nextest run have the same.
fn run_name() -> String {
    let given = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let digits: String = given.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    if digits.len() == 8 {
        return digits.to_lowercase();
    }
    let mut bytes = [0; 4];
    let _ = real::fill(&mut bytes);
    format!("{:08x}", u32::from_ne_bytes(bytes))
}

/// Makes the empty file for the next attempt of a test.
fn claim(folder: &Path, test: &str, run: &str) -> io::Result<PathBuf> {
    let digest = sha256(&[test.as_bytes()]);
    let hash = digest[..5].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    for attempt in 1..ATTEMPTS_MAX {
        let path = folder.join(format!("{}__{hash}__{run}-a{attempt}.journal", slug(test)));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {ATTEMPTS_MAX} journals of {test} already; remove some")))
}

/// The test's name, as far as it is good for a file's.
fn slug(test: &str) -> String {
    let mut slug = String::new();
    for sign in test.chars() {
        let is_plain = sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.' | '-');
        if is_plain {
            slug.push(sign);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').chars().take(SLUG_LEN_MAX).collect()
}

/// Gives proper names to the scratch files of processes that are no more. What cannot be read is none of this run's business.
fn recover(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let Some(run) = scratch_run(name) else { continue };
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        if engine::try_lock_file(&file) {
            recover_file(folder, &path, run);
        }
    }
}

fn recover_file(folder: &Path, path: &Path, run: &str) {
    let Ok(bytes) = fs::read(path) else { return };
    let journal = Journal::decode(&bytes).ok();
    let test = journal.as_ref().and_then(|journal| Head::parse(journal.head_text()).ok()).and_then(|head| head.test);
    if let (Some(journal), Some(test)) = (journal, test) {
        let Ok(proper) = claim(folder, &test, run) else { return };
        if finish(&journal.to_raw(), &proper).is_err() {
            let _ = fs::remove_file(&proper);
            return;
        }
    }
    let _ = fs::remove_file(path);
}

/// The run in the name of a scratch file.
fn scratch_run(name: &str) -> Option<&str> {
    let (run, process) = name.strip_prefix("unfinished-")?.strip_suffix(".journal")?.split_once('-')?;
    let is_run = !run.is_empty() && run.chars().all(|sign| sign.is_ascii_hexdigit());
    (is_run && !process.is_empty() && process.chars().all(|sign| sign.is_ascii_digit())).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_come_from_test_names() {
        assert_eq!(slug("shop::tests::a_token_expires"), "shop-tests-a_token_expires");
        assert_eq!(slug(&"x".repeat(200)).len(), SLUG_LEN_MAX);
        assert_eq!(scratch_run("unfinished-1f0c9a3e-77.journal"), Some("1f0c9a3e"));
        for other in ["unfinished-1f0c-x.journal", "unfinished--7.journal", "index.json"] {
            assert_eq!(scratch_run(other), None, "{other}");
        }
    }
}
