//! The list of runs on this machine, one locked file each, and the sweep of what a dead run left.
//!
//! A run's supervisor holds the lock of its file from before the first directory exists until after the last is gone. So a
//! file that can be locked belongs to nobody alive, and what it names may be removed. A number of a process is never trusted:
//! the processes of a dead run are found by the directory that they work in.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::error::{io, Error, Kind, Result};
use crate::message;

/// First field of a run's file.
const MAGIC: &str = "hermetic-pg run 1";
/// Longest file of a run.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// How often a run's file is made anew when a sweep removes it before it is locked.
const CREATE_TRIES: u32 = 5;

/// What a run's file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Twelve hexadecimal digits.
    pub name: String,
    pub run_dir: PathBuf,
    pub socket_dir: PathBuf,
    /// The supervisor's process, for people.
    pub supervisor: u32,
    /// The process that the run serves; 0 for one that lasts until it is stopped.
    pub owner: u32,
}

impl Run {
    fn encode(&self) -> String {
        let (supervisor, owner) = (self.supervisor.to_string(), self.owner.to_string());
        let (run_dir, socket_dir) = (self.run_dir.to_string_lossy(), self.socket_dir.to_string_lossy());
        message::encode(&[MAGIC, &self.name, &run_dir, &socket_dir, &supervisor, &owner])
    }

    fn decode(text: &str) -> Option<Run> {
        let fields = message::decode(text);
        let [magic, name, run_dir, socket_dir, supervisor, owner] = &fields[..] else { return None };
        // Only directories that carry the run's name are ours to remove.
        let is_ours =
            |path: &str| path.starts_with('/') && path.rsplit('/').next().is_some_and(|own| own.contains(name));
        if magic != MAGIC || name.len() != 12 || !is_ours(run_dir) || !is_ours(socket_dir) {
            return None;
        }
        Some(Run {
            name: name.clone(),
            run_dir: run_dir.into(),
            socket_dir: socket_dir.into(),
            supervisor: supervisor.parse().ok()?,
            owner: owner.parse().ok()?,
        })
    }

    /// Where the supervisor answers.
    pub fn control(&self) -> PathBuf {
        control_path(&self.socket_dir)
    }
}

/// Where a supervisor answers, below its run's socket directory.
pub(crate) fn control_path(socket_dir: &Path) -> PathBuf {
    socket_dir.join(".control")
}

/// The directory of this user's runs. It is made where it is missing.
///
/// # Errors
/// [`Kind::Unavailable`] where no place for it can be used.
pub fn directory() -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let mut reasons = Vec::new();
    for parent in ["/dev/shm", "/tmp"] {
        let path = PathBuf::from(format!("{parent}/hermetic-pg-{user}"));
        match own_directory(&path, user) {
            Ok(()) => return Ok(path),
            Err(reason) => reasons.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(Error::new(Kind::Unavailable, format!("no place for the list of running clusters: {}", reasons.join(", "))))
}

/// Makes a directory that only this user can write, or checks that it is one.
pub(crate) fn own_directory(path: &Path, user: u32) -> Result<(), String> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.to_string()),
    }
    let data = path.symlink_metadata().map_err(|error| error.to_string())?;
    if !data.is_dir() || data.uid() != user || data.mode() & 0o022 != 0 {
        return Err("it is not a directory that only this user can write".to_owned());
    }
    Ok(())
}

/// The lock of a run that lives. Dropping it leaves the file; [`RunLock::release`] removes it.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    _file: File,
}

impl RunLock {
    /// Makes a run's file, locked. Nobody sees it before it is.
    ///
    /// # Errors
    /// [`Kind::Unavailable`] where the directory cannot be written.
    pub fn create(directory: &Path, run: &Run) -> Result<RunLock> {
        let path = directory.join(format!("{}.lock", run.name));
        let fresh = directory.join(format!(".{}.new", run.name));
        for _ in 0..CREATE_TRIES {
            match RunLock::try_create(&fresh, &path, run) {
                Ok(file) => return Ok(RunLock { path, _file: file }),
                // A sweep came between making the file and locking it, and took it for a dead run's.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io(Kind::Unavailable, format!("cannot make {}", path.display()))(error)),
            }
        }
        Err(Error::new(Kind::Unavailable, format!("cannot make {}: it is removed again and again", path.display())))
    }

    fn try_create(fresh: &Path, path: &Path, run: &Run) -> io::Result<File> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
        flock(&file, FlockOperation::LockExclusive)?;
        file.write_all(run.encode().as_bytes())?;
        fs::rename(fresh, path)?;
        Ok(file)
    }

    /// The run has ended and left nothing.
    pub fn release(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The runs of this user that live, in order of their names.
///
/// # Errors
/// [`Kind::Unavailable`] where the list cannot be read.
pub fn living(directory: &Path) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = files(directory)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "lock"))
        .filter_map(|path| {
            let mut file = File::open(path).ok()?;
            flock(&file, FlockOperation::NonBlockingLockShared).is_err().then(|| read(&mut file)).flatten()
        })
        .collect();
    runs.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(runs)
}

/// Removes what dead runs of this user left: processes, shared memory, directories. Returns the names of those runs.
///
/// # Errors
/// [`Kind::Unavailable`] where the list cannot be read. What cannot be removed stays in the list for the next sweep.
pub fn sweep(directory: &Path) -> Result<Vec<String>> {
    let mut swept = Vec::new();
    forget_shares(directory);
    for path in files(directory)? {
        let Ok(mut file) = File::open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() || is_replaced(&file, &path) {
            continue;
        }
        if let Some(run) = read(&mut file) {
            remains(&run);
            if run.run_dir.exists() || run.socket_dir.exists() {
                continue;
            }
            swept.push(run.name);
        }
        let _ = fs::remove_file(&path);
    }
    Ok(swept)
}

/// Files that name a run to those who share it, of runs that have gone.
fn forget_shares(directory: &Path) {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in names.filter(|path| path.extension().is_some_and(|ending| ending == "share")) {
        if fs::read_to_string(&path).is_ok_and(|control| !Path::new(&control).exists()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Another sweep, or the run's own end, was here between our opening and our locking.
fn is_replaced(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(named)) = (file.metadata(), path.symlink_metadata()) else { return true };
    (opened.dev(), opened.ino()) != (named.dev(), named.ino())
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = || io(Kind::Unavailable, format!("cannot list {}", directory.display()));
    let names = fs::read_dir(directory).map_err(failed())?;
    let is_run = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "lock" || ending == "new");
    Ok(names.filter_map(|entry| Some(entry.ok()?.path())).filter(is_run).collect())
}

fn read(file: &mut File) -> Option<Run> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Run::decode(&text)
}

/// Ends the processes of a run, then removes its shared memory and its directories.
pub(crate) fn remains(run: &Run) {
    let data_dir = run.run_dir.join("data");
    kill_workers(&data_dir);
    remove_shared_memory(&data_dir);
    let _ = fs::remove_dir_all(&run.socket_dir);
    let _ = fs::remove_dir_all(&run.run_dir);
}

/// Kills every process that works in a directory, and returns when none is left.
fn kill_workers(directory: &Path) {
    let Ok(data) = directory.metadata() else { return };
    let place = (data.dev(), data.ino());
    // A process that is being made while we look appears in the next round.
    for _ in 0..100 {
        let found = workers(place);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            // Looked at again through the handle's life: the number cannot be another's now.
            if works_in(pid, place) && pidfd_send_signal(&handle, Signal::KILL).is_ok() {
                wait_for_end(&handle);
            }
        }
    }
}

fn wait_for_end(handle: &impl std::os::fd::AsFd) {
    let mut waited = [rustix::event::PollFd::new(handle, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
    let _ = rustix::event::poll(&mut waited, Some(&limit));
}

fn workers(place: (u64, u64)) -> Vec<Pid> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter(|pid| works_in(*pid, place)).collect()
}

fn works_in(pid: Pid, place: (u64, u64)) -> bool {
    let path = format!("/proc/{}/cwd", pid.as_raw_nonzero());
    fs::metadata(path).is_ok_and(|data| (data.dev(), data.ino()) == place)
}

/// The seventh line of `postmaster.pid` names the key and the number of the segment that guards the data directory.
fn remove_shared_memory(data_dir: &Path) {
    let Ok(text) = fs::read_to_string(data_dir.join("postmaster.pid")) else { return };
    let Some(line) = text.lines().nth(6) else { return };
    let mut numbers = line.split_whitespace().filter_map(|part| part.parse::<i64>().ok());
    if let (Some(key), Some(id)) = (numbers.next(), numbers.next()) {
        hermetic_sys::process::remove_shared_segment(key as i32, id as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hermetic-pg-registry-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn run_in(root: &Path, name: &str) -> Run {
        let run = Run {
            name: name.to_owned(),
            run_dir: root.join(format!("hermetic-pg-{name}")),
            socket_dir: root.join(format!("hpg-{name}")),
            supervisor: 1,
            owner: 2,
        };
        fs::create_dir_all(run.run_dir.join("data")).unwrap();
        fs::create_dir_all(&run.socket_dir).unwrap();
        run
    }

    #[test]
    fn a_living_run_is_listed_and_not_swept() {
        let root = scratch("living");
        let run = run_in(&root, "0123456789ab");
        let lock = RunLock::create(&root, &run).unwrap();
        assert_eq!(living(&root).unwrap(), std::slice::from_ref(&run));
        assert_eq!(sweep(&root).unwrap(), Vec::<String>::new());
        assert!(run.run_dir.exists());
        lock.release();
        assert_eq!(living(&root).unwrap(), []);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_dead_run_is_swept_with_its_processes() {
        let root = scratch("dead");
        let run = run_in(&root, "aaaaaaaaaaaa");
        drop(RunLock::create(&root, &run).unwrap());
        let mut worker = Command::new("sleep").arg("1000").current_dir(run.run_dir.join("data")).spawn().unwrap();
        let mut bystander = Command::new("cat").current_dir(&root).stdin(Stdio::piped()).spawn().unwrap();
        // The worker has the directory as its own only once it has been started, which `spawn` waits for.
        let reaper = std::thread::spawn(move || worker.wait().unwrap());
        assert_eq!(sweep(&root).unwrap(), ["aaaaaaaaaaaa"]);
        assert!(!reaper.join().unwrap().success());
        assert!(!run.run_dir.exists() && !run.socket_dir.exists());
        assert_eq!(bystander.try_wait().unwrap(), None);
        drop(bystander.stdin.take());
        bystander.wait().unwrap();
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_not_provably_ours_is_left() {
        let root = scratch("foreign");
        let run = run_in(&root, "bbbbbbbbbbbb");
        let foreign = message::encode(&[MAGIC, "bbbbbbbbbbbb", "/etc", "/tmp", "1", "2"]);
        fs::write(root.join("bbbbbbbbbbbb.lock"), foreign).unwrap();
        assert_eq!(sweep(&root).unwrap(), Vec::<String>::new());
        assert!(run.run_dir.exists() && Path::new("/etc").exists());
        assert_eq!(Run::decode(&run.encode()), Some(run));
        fs::remove_dir_all(root).unwrap();
    }
}
