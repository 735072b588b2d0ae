//! The server's process: started through a stage that ties its life to the supervisor's, watched, and ended.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::error::{io, Error, Kind, Result};
use crate::helper::Helper;
use crate::identity::Identity;
use crate::options::{Isolation, SETTINGS};
use crate::place::socket_path_for;
use crate::plan::{Plan, Source};
use crate::wire::{code, Connection, Failure};

/// How long a server that is told to end at once may take.
const QUIT_LIMIT: Duration = Duration::from_secs(2);
/// How long a server may take to end in order, all written.
const ORDERLY_LIMIT: Duration = Duration::from_secs(60);
/// Between two tries to connect. Free: the server's socket is there long before it answers.
const POLL: Duration = Duration::from_micros(500);
/// The end of the log that goes into errors.
const LOG_TAIL_BYTES: u64 = 4000;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    postmaster: OwnedFd,
    socket: PathBuf,
    log: PathBuf,
}

/// A program of PostgreSQL, behind the stage: with our user, our locale, none of the caller's `PG…` variables, and a death
/// signal.
pub fn staged(plan: &Plan, program: &Path, isolation: Isolation, preload: &Path) -> Result<Command> {
    let helper = Helper::current()?;
    let mut command = Command::new(&helper.program);
    command.args(&helper.words).arg("serve").arg(std::process::id().to_string());
    command.arg(match (isolation, &plan.identity) {
        (Isolation::Namespace, _) => "overlay".to_owned(),
        (Isolation::Copy, Identity::Mapped) => "mapped".to_owned(),
        (Isolation::Copy, Identity::User { user, group, .. }) => format!("{user}:{group}"),
        (Isolation::Copy, Identity::Caller) => "plain".to_owned(),
    });
    let lower = match (isolation, &plan.source) {
        (Isolation::Namespace, Source::Prepared(file)) => lower_of(file),
        _ => PathBuf::new(),
    };
    command.arg(lower).arg(&plan.run.run_dir).arg(preload).arg(program);
    let home = plan.postgres.parent().unwrap_or(Path::new("/usr/bin")).to_string_lossy();
    let libraries = std::env::var_os("LD_LIBRARY_PATH");
    command.env_clear().env("PATH", format!("{home}:/usr/local/bin:/usr/bin:/bin"));
    command.env("LC_ALL", "C").env("TZ", "UTC").envs(libraries.map(|path| ("LD_LIBRARY_PATH", path)));
    command.stdin(Stdio::null());
    Ok(command)
}

/// The directory beside a prepared file that holds the same, unpacked.
pub(crate) fn lower_of(file: &Path) -> PathBuf {
    file.with_extension("lower")
}

impl Server {
    /// Starts the server of a plan on its data directory.
    ///
    /// # Errors
    /// [`Kind::Start`] where the program cannot be run.
    pub fn start(plan: &Plan) -> Result<Server> {
        let log = plan.log();
        let failed = || io(Kind::Start, format!("cannot start {}", plan.postgres.display()));
        let out = File::options().create(true).append(true).open(&log).map_err(failed())?;
        let preload = plan.follower.as_deref().unwrap_or(Path::new(""));
        let mut command = staged(plan, &plan.postgres, plan.isolation, preload)?;
        if plan.follower.is_some() {
            command.env("HERMETIC_FOLLOW", plan.clocks());
        }
        command.arg("-D").arg(plan.data_dir()).arg("-k").arg(&plan.run.socket_dir);
        command.arg("-p").arg(plan.port.to_string());
        let own = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        for (name, value) in own.chain(plan.settings.iter().cloned()) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdout(out.try_clone().map_err(failed())?).stderr(out);
        let child = command.spawn().map_err(failed())?;
        let pid = Pid::from_child(&child);
        let postmaster = pidfd_open(pid, PidfdFlags::empty()).map_err(std::io::Error::from).map_err(failed())?;
        Ok(Server { child, postmaster, socket: socket_path_for(&plan.run.socket_dir, plan.port), log })
    }

    /// Waits for the first connection. `is_over` is asked meanwhile whether anybody still wants it.
    ///
    /// # Errors
    /// [`Kind::Start`] with the log if the server ends or takes too long; [`Kind::Stopped`] if nobody wants it.
    pub fn wait_until_ready(&mut self, plan: &Plan, is_over: impl Fn() -> bool) -> Result<Connection> {
        let limit = Instant::now() + plan.start_timeout;
        loop {
            let is_worth_trying = plan.isolation == Isolation::Namespace || says_ready(&plan.data_dir());
            if !is_worth_trying && self.child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < limit
            {
                if is_over() {
                    return Err(Error::new(Kind::Stopped, "the owner has gone"));
                }
                std::thread::sleep(POLL);
                continue;
            }
            let failure = match Connection::open(&self.socket, &plan.superuser, "postgres") {
                Ok(connection) => {
                    self.find_postmaster(plan);
                    self.check_follower(plan)?;
                    return Ok(connection);
                }
                Err(failure) => failure,
            };
            if let Failure::Server(error) = &failure {
                if error.code != code::STARTING_UP {
                    return Err(self.failed(&format!("the server refuses: {failure}")));
                }
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(&format!("the server ended while starting, with {status}")));
            }
            if is_over() {
                return Err(Error::new(Kind::Stopped, "the owner has gone"));
            }
            if Instant::now() > limit {
                let seconds = plan.start_timeout.as_secs_f64();
                return Err(self.failed(&format!("the server took longer than start_timeout ({seconds} s) to start")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// A server in which the library does not work would show real time and say nothing.
    fn check_follower(&self, plan: &Plan) -> Result<()> {
        match &plan.follower {
            Some(library) if !plan.clocks().join("server").exists() => {
                Err(self.failed(&format!("the server cannot follow clocks: it did not load {}", library.display())))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::new(Kind::Start, what).with_log(tail(&self.log))
    }

    /// In namespaces the server is a child of the stage, which only waits for it.
    fn find_postmaster(&mut self, plan: &Plan) {
        if plan.isolation != Isolation::Namespace {
            return;
        }
        let stage = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{stage}/task/{stage}/children")).unwrap_or_default();
        let first = children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        if let Some(handle) = first.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
            self.postmaster = handle;
        }
    }

    /// Readable when the server has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.postmaster.as_fd()
    }

    /// How a server that has ended did so, with the end of its log.
    pub fn obituary(&mut self) -> Error {
        let how = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        Error::new(Kind::Died, format!("the server has ended by itself, with {how}; start another cluster"))
            .with_log(tail(&self.log))
    }

    /// Ends the server at once. Nothing of its data is kept in order.
    pub fn quit(&mut self) {
        self.end(Signal::QUIT, QUIT_LIMIT);
    }

    /// Ends the server in order, so that its data directory can be kept.
    ///
    /// # Errors
    /// [`Kind::Start`] with the log if it does not end so.
    pub fn shut_down(&mut self) -> Result<()> {
        match self.end(Signal::INT, ORDERLY_LIMIT) {
            Some(status) if status.success() => Ok(()),
            _ => Err(self.failed("the server did not shut down in order")),
        }
    }

    fn end(&mut self, signal: Signal, limit: Duration) -> Option<std::process::ExitStatus> {
        let _ = pidfd_send_signal(&self.postmaster, signal);
        if !wait_for(self.postmaster.as_fd(), limit) {
            let _ = pidfd_send_signal(&self.postmaster, Signal::KILL);
        }
        self.child.wait().ok()
    }
}

/// The eighth line of `postmaster.pid` is the server's state. A look at it costs less than a connection that is refused, for
/// which the server makes a process.
fn says_ready(data_dir: &Path) -> bool {
    let text = std::fs::read_to_string(data_dir.join("postmaster.pid")).unwrap_or_default();
    text.lines().nth(7).is_some_and(|state| state.trim_end() == "ready")
}

/// Waits until a descriptor is readable; false when the limit passes first.
pub(crate) fn wait_for(handle: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut waited = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    rustix::event::poll(&mut waited, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// The end of a log, in whole lines.
pub fn tail(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let len = file.metadata()?.len();
        let from = len.saturating_sub(LOG_TAIL_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(if from > 0 { text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()) } else { text })
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_begins_with_a_whole_line() {
        let path = std::env::temp_dir().join(format!("hermetic-pg-tail-{}", std::process::id()));
        let line = "0123456789\n";
        std::fs::write(&path, line.repeat(1000)).unwrap();
        let text = tail(&path);
        assert!(text.starts_with("0123456789\n") && text.len() as u64 <= LOG_TAIL_BYTES, "{}", text.len());
        std::fs::write(&path, line).unwrap();
        assert_eq!(tail(&path), line);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tail(&path), "");
    }
}
