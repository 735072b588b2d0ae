//! Where a cluster lives: parents of its directories, the length of its socket's path, and room.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::error::{io, Error, Kind, Result};

/// Longest path of a unix socket, in bytes, without the NUL: `sun_path` of Linux.
pub const SUN_PATH_MAX: usize = 107;
/// Parents of data directories, tried in this order before the directory for temporary files: memory first.
pub const DATA_PARENTS: [&str; 1] = ["/dev/shm"];
/// Parents of socket directories: short paths.
pub const SOCKET_PARENTS: [&str; 2] = ["/dev/shm", "/tmp"];
/// The file system in which clocks are shared with a server that follows them.
pub const CLOCKS_PARENT: &str = "/dev/shm";
/// Room that a running cluster needs beside its prepared files: WAL, the log, first writes. In bytes.
pub const ROOM_BYTES: u64 = 48 << 20;

/// The path of the socket that a server with this port makes in a directory.
///
/// ```
/// use hermetic_pg::socket_path_for;
/// assert_eq!(socket_path_for("/tmp/x".as_ref(), 5432).to_str(), Some("/tmp/x/.s.PGSQL.5432"));
/// ```
pub fn socket_path_for(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Checks that a server can put its socket there; returns the socket's path.
///
/// # Errors
/// [`Kind::SocketPath`] for a path longer than [`SUN_PATH_MAX`]; [`Kind::Invalid`] for white space in it.
pub fn check_socket_dir(directory: &Path, port: u16) -> Result<PathBuf> {
    let text = directory.to_string_lossy();
    if text.contains(char::is_whitespace) {
        return Err(Error::new(
            Kind::Invalid,
            format!("socket directory {text:?} contains whitespace, which connection strings and server options split at; choose another"),
        ));
    }
    let path = socket_path_for(directory, port);
    let len = path.as_os_str().len();
    if len > SUN_PATH_MAX {
        return Err(Error::new(
            Kind::SocketPath,
            format!(
                "the path of the socket would have {len} bytes, the kernel takes {SUN_PATH_MAX}: {}; give a shorter \
                 socket_parent, such as /dev/shm or /tmp",
                path.display()
            ),
        ));
    }
    Ok(path)
}

/// Chooses a parent: the given one or nothing else; otherwise the first usual one that exists and can be written.
///
/// # Errors
/// [`Kind::Unavailable`] with the reason for each place.
pub fn choose_parent(what: &str, given: Option<&Path>, usual: &[PathBuf]) -> Result<PathBuf> {
    if let Some(path) = given {
        let path = std::path::absolute(path).map_err(io(Kind::Invalid, format!("{what} {}", path.display())))?;
        return match usable(&path) {
            Ok(()) => Ok(path),
            Err(reason) => Err(Error::new(
                Kind::Unavailable,
                format!("{what} {} cannot be used: {reason}; give a directory that can be written", path.display()),
            )),
        };
    }
    let mut reasons = Vec::new();
    for path in usual {
        match usable(path) {
            Ok(()) => return Ok(path.clone()),
            Err(reason) => reasons.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(Error::new(Kind::Unavailable, format!("no place for a cluster: {}; give one with {what}", reasons.join(", "))))
}

fn usable(path: &Path) -> Result<(), String> {
    if !path.is_dir() {
        return Err("it is not a directory".to_owned());
    }
    rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| error.to_string())
}

/// Bytes that are free below a directory, and all there are.
pub(crate) fn free_space(path: &Path) -> Result<(u64, u64)> {
    let figures = rustix::fs::statvfs(path)
        .map_err(std::io::Error::from)
        .map_err(io(Kind::Unavailable, format!("cannot tell the free space of {}", path.display())))?;
    Ok((figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize))
}

/// Checks that `needed` bytes are free below a directory.
///
/// # Errors
/// [`Kind::Space`] with the figures and what to do.
pub(crate) fn check_space(path: &Path, needed: u64) -> Result<()> {
    let (free, all) = free_space(path)?;
    if free >= needed {
        return Ok(());
    }
    let mib = |bytes: u64| bytes >> 20;
    Err(Error::new(
        Kind::Space,
        format!(
            "{} has {} MiB free of {} MiB, a cluster needs {} MiB: free some, enlarge it (containers: --shm-size), \
             or give another data_parent",
            path.display(),
            mib(free),
            mib(all),
            mib(needed)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_limit_is_checked_to_the_byte() {
        let directory = |len: usize| PathBuf::from(format!("/{}", "d".repeat(len - 1)));
        let own = "/.s.PGSQL.5432".len();
        assert!(check_socket_dir(&directory(SUN_PATH_MAX - own), 5432).is_ok());
        let error = check_socket_dir(&directory(SUN_PATH_MAX - own + 1), 5432).unwrap_err();
        assert_eq!(error.kind, Kind::SocketPath);
        assert!(error.what.contains("108 bytes") && error.what.contains("/dev/shm"), "{}", error.what);
        assert!(check_socket_dir(&directory(SUN_PATH_MAX - own + 1), 543).is_ok());
    }

    #[test]
    fn white_space_is_refused() {
        for path in ["/a b", "/a\tb", "/a\n"] {
            assert_eq!(check_socket_dir(Path::new(path), 5432).unwrap_err().kind, Kind::Invalid);
        }
    }

    #[test]
    fn a_given_parent_is_used_or_refused() {
        let usual = [std::env::temp_dir()];
        assert_eq!(choose_parent("data_parent", None, &usual).unwrap(), usual[0]);
        let error = choose_parent("data_parent", Some(Path::new("/nonexistent")), &usual).unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.what.contains("/nonexistent") && error.what.contains("data_parent"), "{}", error.what);
    }

    #[test]
    fn too_little_room_is_told_with_figures() {
        let error = check_space(&std::env::temp_dir(), u64::MAX).unwrap_err();
        assert_eq!(error.kind, Kind::Space);
        assert!(error.what.contains("MiB free of"), "{}", error.what);
        check_space(&std::env::temp_dir(), 1).unwrap();
    }
}
