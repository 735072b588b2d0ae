//! Connecting to unix sockets of our own clusters.
//!
//! By a system call of our own: in a process whose network is guarded, libc's `connect` is refused, and a launcher is no part
//! of what is guarded.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A stream to the socket at `path`.
///
/// # Errors
/// The system's: nobody listens there, or the path is too long.
pub fn open(path: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}
