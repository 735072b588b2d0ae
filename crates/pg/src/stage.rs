//! The last step before a program of PostgreSQL runs: a process of one thread that sets what only a process itself can set,
//! then becomes the program.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{mount, MountFlags};
use rustix::process::{getegid, geteuid, getppid, set_parent_process_death_signal, Signal};

use crate::identity::mapped_id;

/// `serve PARENT plain|USER:GROUP|mapped|overlay LOWER RUN_DIR PRELOAD PROGRAM ARGUMENT…`. Returns only when it fails.
pub fn run(arguments: &[OsString]) -> io::Error {
    match prepare(arguments) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(arguments: &[OsString]) -> io::Result<Command> {
    let [parent, way, lower, run_dir, preload, program, rest @ ..] = arguments else {
        return Err(io::Error::other(
            "serve PARENT plain|USER:GROUP|mapped|overlay LOWER RUN_DIR PRELOAD PROGRAM ARGUMENT...",
        ));
    };
    let run_dir = PathBuf::from(run_dir);
    let way = way.to_str().unwrap_or("");
    let library = open_library(Path::new(preload))?;
    // The user is changed here and not by whoever starts this program, which may lie where that user cannot reach it; and
    // before anything else, because the kernel forgets the death signal of a process that changes its user.
    if let Some((user, group)) = way.split_once(':').and_then(|(user, group)| user.parse().ok().zip(group.parse().ok()))
    {
        hermetic_sys::process::become_user(user, group)?;
    }
    follow_parent(parent)?;
    match way {
        "mapped" => map_identity(libc::CLONE_NEWUSER)?,
        "overlay" => {
            map_identity(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID)?;
            lay_over(Path::new(lower), &run_dir)?;
            if let Some(code) = hermetic_sys::process::fork_and_wait()? {
                std::process::exit(code);
            }
            // The first process of a namespace: when it ends, the kernel ends all others.
            set_parent_process_death_signal(Some(Signal::QUIT))?;
        }
        _ => {}
    }
    let mut command = Command::new(program);
    // Not to keep a directory of the caller's busy; and the processes of a run are found by where they work.
    command.args(rest).current_dir(run_dir.join("data"));
    if let Some(fd) = library {
        command.env("LD_PRELOAD", format!("/proc/self/fd/{fd}"));
    }
    Ok(command)
}

/// Opens a library that the program shall load: the user that it runs as may not be able to reach the file by its path. The
/// descriptor stays open for the program.
fn open_library(path: &Path) -> io::Result<Option<i32>> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display()));
    let file = fs::File::open(path).map_err(failed)?;
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    Ok(Some(file.into_raw_fd()))
}

/// When the supervisor ends, however it does, the server is told to end at once. It tells its own children.
fn follow_parent(parent: &OsString) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::QUIT))?;
    let expected: Option<i32> = parent.to_str().and_then(|text| text.parse().ok());
    // The supervisor may have ended before the line above.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != expected {
        return Err(io::Error::other("the supervisor has gone"));
    }
    Ok(())
}

fn map_identity(flags: i32) -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    hermetic_sys::process::unshare(flags)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {user} 1", mapped_id(user)))?;
    fs::write("/proc/self/gid_map", format!("{} {group} 1", mapped_id(group)))
}

/// Mounts a file system in memory on `data` below the run's directory, and the prepared files, with room for changes, on it.
fn lay_over(lower: &Path, run_dir: &Path) -> io::Result<()> {
    let room = run_dir.join("room");
    let data = run_dir.join("data");
    // Huge pages make large files quicker; a kernel that was built without them refuses the word.
    let quick = mount("hermetic-pg", &room, "tmpfs", MountFlags::NODEV, c"mode=0700,huge=within_size");
    quick.or_else(|_| mount("hermetic-pg", &room, "tmpfs", MountFlags::NODEV, c"mode=0700"))?;
    let (upper, work) = (room.join("upper"), room.join("work"));
    fs::create_dir(&upper)?;
    fs::create_dir(&work)?;
    // PostgreSQL insists on 0700, and the mount's root has the mode of the upper directory.
    fs::set_permissions(&upper, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let layers =
        format!("lowerdir={},upperdir={},workdir={},userxattr", lower.display(), upper.display(), work.display());
    let layers = std::ffi::CString::new(layers).map_err(io::Error::other)?;
    mount("hermetic-pg", &data, "overlay", MountFlags::NODEV, layers.as_c_str())?;
    Ok(())
}
