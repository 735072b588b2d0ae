//! The process that owns a cluster: it outlives whoever started it by as long as cleaning up takes.
//!
//! It is told a plan on its standard input, a socket; answers on it when the cluster is ready; then serves requests there and
//! on the run's control socket. It ends when the last lease has ended: a lease ends when its connection closes or its process
//! dies, whichever is seen first, because a forked child may keep a connection open that it knows nothing of.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::archive::{Archive, Phase};
use crate::desk::Desk;
use crate::error::{io as io_error, Error, Kind, Result};
use crate::identity::Identity;
use crate::message::{self, encode_answer, MESSAGE_BYTES_MAX};
use crate::options::Isolation;
use crate::plan::{Plan, Source};
use crate::registry::{control_path, remains, sweep, RunLock};
use crate::requests;
use crate::server::{staged, Server};
use crate::version::Version;
use crate::wire::Connection;

/// `supervise`: runs until the cluster is gone. Errors go to whoever sent the plan.
///
/// # Errors
/// There is nobody to talk to.
pub fn run() -> io::Result<()> {
    hermetic_sys::process::detach()?;
    hermetic_sys::process::close_descriptors_from(3)?;
    // What the server's processes leave when it dies is reaped here, not by a stranger.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    std::env::set_current_dir("/")?;
    let socket: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let mut owner = UnixStream::from(socket);
    let plan = read_line(&mut owner)?;
    let mut plan = match Plan::decode(&plan) {
        Ok(plan) => plan,
        Err(error) => return owner.write_all(encode_answer(&Err(error)).as_bytes()),
    };
    plan.run.supervisor = std::process::id();
    supervise(&plan, owner)
}

/// Reads one line, byte by byte: it is short, and nothing after it may be taken.
fn read_line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MESSAGE_BYTES_MAX && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn supervise(plan: &Plan, mut owner: UnixStream) -> io::Result<()> {
    let watch = Watch::new(plan.run.owner, &owner);
    let _ = sweep(&plan.registry);
    let lock = match RunLock::create(&plan.registry, &plan.run) {
        Ok(lock) => lock,
        Err(error) => return owner.write_all(encode_answer(&Err(error)).as_bytes()),
    };
    let mut started = Start { plan, server: None };
    let result = started.cluster(&watch);
    let mut server = started.server;
    match result {
        Ok((desk, woken, listener)) => {
            let answer = requests::describe(&desk);
            let sent = owner.write_all(encode_answer(&Ok(answer)).as_bytes());
            if plan.run.owner == 0 {
                // A lasting cluster does not need whoever started it.
                requests::serve(desk.clone(), owner, None, false);
            } else if sent.is_ok() {
                hand_over(&desk, owner, watch, plan.run.owner);
            } else {
                desk.close();
            }
            accept(desk.clone(), listener);
            watch_over(&desk, server.as_mut(), &woken);
            clean_up(plan, server, lock);
        }
        Err(error) => {
            let answer = encode_answer(&Err(error));
            clean_up(plan, server, lock);
            let _ = owner.write_all(answer.as_bytes());
        }
    }
    Ok(())
}

/// The first lease is the owner's. Where somebody else started the cluster for it, only its process tells when it ends.
fn hand_over(desk: &Arc<Desk>, stream: UnixStream, watch: Watch, owner: u32) {
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok();
    let is_own = peer.is_some_and(|peer| peer.pid.as_raw_nonzero().get() as u32 == owner);
    if is_own {
        return requests::serve(desk.clone(), stream, watch.process, true);
    }
    requests::bind_to_process(desk, watch.process);
    requests::serve(desk.clone(), stream, None, false);
}

/// Ends the server and removes everything of the run, its file last.
fn clean_up(plan: &Plan, server: Option<Server>, lock: RunLock) {
    if let Some(mut server) = server {
        server.quit();
    }
    remains(&plan.run);
    if let Some(share) = &plan.share {
        let _ = std::fs::remove_file(share);
    }
    lock.release();
}

/// Two signs that the owner has gone: its process has ended, or its end of the socket is closed.
struct Watch {
    process: Option<OwnedFd>,
    is_missing: bool,
    socket: Option<OwnedFd>,
}

impl Watch {
    fn new(owner: u32, socket: &UnixStream) -> Watch {
        if owner == 0 {
            return Watch { process: None, is_missing: false, socket: socket.as_fd().try_clone_to_owned().ok() };
        }
        let process = process_handle(owner);
        // Gone before we looked. Clean up, do not fail.
        Watch { is_missing: process.is_none(), process, socket: socket.as_fd().try_clone_to_owned().ok() }
    }

    fn is_over(&self) -> bool {
        let mut waited: Vec<PollFd<'_>> =
            self.process.iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
        // No request comes before the cluster is ready, so what can be read is the end.
        waited.extend(self.socket.iter().map(|socket| PollFd::new(socket, PollFlags::RDHUP)));
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        self.is_missing || poll(&mut waited, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    fn check(&self) -> Result<()> {
        if self.is_over() {
            return Err(Error::new(Kind::Stopped, "the owner has gone"));
        }
        Ok(())
    }
}

/// A handle that becomes readable when a process ends.
pub(crate) fn process_handle(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()
}

/// A start under way. The server stands here as soon as it runs, so that a failure after that ends it.
struct Start<'a> {
    plan: &'a Plan,
    server: Option<Server>,
}

impl Start<'_> {
    fn cluster(&mut self, watch: &Watch) -> Result<(Arc<Desk>, UnixStream, UnixListener)> {
        watch.check()?;
        make_directories(self.plan)?;
        let (note, connection) = match &self.plan.source {
            Source::Initdb => {
                initdb(self.plan)?;
                watch.check()?;
                (vec![String::new()], self.serve(watch)?)
            }
            Source::Prepared(file) => self.prepared(file, watch)?,
        };
        let failed = || io_error(Kind::Start, "cannot make the supervisor's sockets");
        let (woken, wake) = UnixStream::pair().map_err(failed())?;
        wake.set_nonblocking(true).map_err(failed())?;
        let listener = UnixListener::bind(control_path(&self.plan.run.socket_dir)).map_err(failed())?;
        let template = note.first().filter(|name| !name.is_empty()).cloned();
        let desk = Desk::new(self.plan.clone(), template, connection, wake);
        desk.open(&note[1..])?;
        Ok((desk, woken, listener))
    }

    fn serve(&mut self, watch: &Watch) -> Result<Connection> {
        let server = self.server.insert(Server::start(self.plan)?);
        server.wait_until_ready(self.plan, || watch.is_over())
    }

    /// Unpacks what the server needs to start, starts it, and unpacks the rest meanwhile.
    fn prepared(&mut self, file: &Path, watch: &Watch) -> Result<(Vec<String>, Connection)> {
        let failed = || io_error(Kind::Cache, format!("cannot unpack {}", file.display()));
        let archive = Archive::open(file).map_err(failed())?;
        let note = message::decode(&archive.note);
        if self.plan.isolation == Isolation::Namespace {
            return Ok((note, self.serve(watch)?));
        }
        let (data_dir, owner) = (self.plan.data_dir(), self.plan.identity.owner());
        archive.make_directories(&data_dir, owner).map_err(failed())?;
        archive.unpack(&data_dir, Phase::Start, owner, 2).map_err(failed())?;
        watch.check()?;
        std::thread::scope(|scope| {
            let rest = scope.spawn(|| archive.unpack(&data_dir, Phase::Later, owner, 1));
            let connection = self.serve(watch);
            let rest = rest.join().unwrap_or_else(|_| Err(io::Error::other("a thread that unpacks has failed")));
            // A full disk shows on both sides; the reason is on this one.
            rest.map_err(failed())?;
            Ok((note, connection?))
        })
    }
}

fn make_directories(plan: &Plan) -> Result<()> {
    let mut paths = vec![plan.run.run_dir.clone(), plan.run.socket_dir.clone(), plan.data_dir()];
    if plan.isolation == Isolation::Namespace {
        paths.push(plan.run.run_dir.join("room"));
    }
    if plan.follower.is_some() {
        paths.push(plan.clocks());
    }
    for path in paths {
        let failed = || io_error(Kind::Unavailable, format!("cannot make {}", path.display()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(failed())?;
        if let Some((user, group)) = plan.identity.owner() {
            std::os::unix::fs::chown(&path, Some(user), Some(group)).map_err(failed())?;
        }
    }
    Ok(())
}

fn initdb(plan: &Plan) -> Result<()> {
    let mut command = staged(plan, &plan.initdb, Isolation::Copy, Path::new(""))?;
    command.arg("-D").arg(plan.data_dir()).arg("-U").arg(&plan.superuser);
    command.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--wal-segsize=1"]);
    command.args(["--auth-local=trust", "--auth-host=reject"]);
    command.args(Version::parse(&plan.version)?.initdb_arguments());
    let done = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let name = plan.initdb.display();
    let done = done.map_err(io_error(Kind::Start, format!("cannot run {name}")))?;
    if done.status.success() {
        return Ok(());
    }
    let output = [done.stdout, done.stderr].concat();
    let output = String::from_utf8_lossy(&output).into_owned();
    let kind = if output.contains("No space left on device") { Kind::Space } else { Kind::Start };
    let error = Error::new(kind, format!("initdb failed with {}", done.status));
    let identity = if plan.identity == Identity::Caller { String::new() } else { plan.identity.note() };
    Err(error.of_command(name.to_string()).with_output(format!("{output}{identity}")))
}

fn accept(desk: Arc<Desk>, listener: UnixListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            let process = peer.ok().and_then(|peer| process_handle(peer.pid.as_raw_nonzero().get() as u32));
            requests::serve(desk.clone(), stream, process, false);
        }
    });
}

/// Waits until the cluster is to end. A server that ends by itself is told to all who ask, and nothing is cleaned up under
/// them before they have seen it.
fn watch_over(desk: &Desk, server: Option<&mut Server>, woken: &UnixStream) {
    let Some(server) = server else { return };
    let mut is_dead = false;
    while !desk.is_closing() {
        if desk.take_order_to_shut_down() {
            is_dead = true;
            desk.report_shut_down(server.shut_down());
        }
        let ended = server.ended();
        let mut waited = vec![PollFd::new(woken, PollFlags::IN)];
        if !is_dead {
            waited.push(PollFd::new(&ended, PollFlags::IN));
        }
        let _ = poll(&mut waited, None);
        if !waited[0].revents().is_empty() {
            let _ = (&*woken).read(&mut [0; 64]);
        }
        let has_ended = waited.get(1).is_some_and(|entry| !entry.revents().is_empty());
        if has_ended && !desk.is_closing() {
            is_dead = true;
            desk.bury(server.obituary());
        }
    }
}
