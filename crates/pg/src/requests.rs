//! Requests to a supervisor: one thread for each connection, one line each way.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};

use crate::archive::{self, Phase};
use crate::desk::Desk;
use crate::error::{io, Error, Kind, Result};
use crate::message::{self, decode, encode_answer, MESSAGE_BYTES_MAX};
use crate::server::tail;
use crate::wire::identifier;

/// What a connection holds.
struct Client {
    desk: Arc<Desk>,
    stream: UnixStream,
    process: Option<OwnedFd>,
    has_lease: bool,
    databases: Vec<String>,
}

/// Serves a connection until it closes or its process dies; then its databases go, and its lease.
pub fn serve(desk: Arc<Desk>, stream: UnixStream, process: Option<OwnedFd>, has_lease: bool) {
    let mut client = Client { desk, stream, process, has_lease, databases: Vec::new() };
    std::thread::spawn(move || {
        client.answer_all();
        if client.has_lease {
            client.desk.leave();
        }
        for name in std::mem::take(&mut client.databases) {
            if client.desk.is_closing() {
                break;
            }
            let _ = client.desk.retire(&name);
        }
    });
}

/// Lets a lease last as long as a process does.
pub fn bind_to_process(desk: &Arc<Desk>, process: Option<OwnedFd>) {
    let desk = desk.clone();
    std::thread::spawn(move || {
        if let Some(process) = process {
            while poll(&mut [PollFd::new(&process, PollFlags::IN)], None).is_err() {}
        }
        desk.leave();
    });
}

/// What a client needs to know of the cluster.
pub fn describe(desk: &Desk) -> Vec<String> {
    let plan = &desk.plan;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    vec![
        plan.run.name.clone(),
        path(&plan.data_dir()),
        path(&plan.run.socket_dir),
        plan.run.supervisor.to_string(),
        plan.run.owner.to_string(),
        plan.port.to_string(),
        plan.superuser.clone(),
        plan.maintenance_db.clone(),
        plan.version.clone(),
        plan.identity.note(),
        path(&plan.log()),
    ]
}

impl Client {
    fn answer_all(&mut self) {
        let mut pending = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let fields = decode(&String::from_utf8_lossy(&line));
                let answer = encode_answer(&self.answer(&fields));
                if self.stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            if !self.wait() {
                return;
            }
            match self.stream.read(&mut piece) {
                Ok(len) if len > 0 && pending.len() < MESSAGE_BYTES_MAX => pending.extend_from_slice(&piece[..len]),
                _ => return,
            }
        }
    }

    /// Waits for the next request. False when the client's process has ended.
    fn wait(&self) -> bool {
        let mut waited = vec![PollFd::new(&self.stream, PollFlags::IN)];
        waited.extend(self.process.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
        while poll(&mut waited, None).is_err() {}
        waited.get(1).is_none_or(|entry| entry.revents().is_empty())
    }

    fn answer(&mut self, fields: &[String]) -> Result<Vec<String>> {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        match fields[..] {
            ["lease"] => self.lease(),
            ["take"] => self.take(None),
            ["take", name] => self.take(Some(name)),
            ["retire", name] => {
                self.databases.retain(|own| own != name);
                self.desk.retire(name).map(|()| Vec::new())
            }
            ["entrust"] => {
                self.databases.clear();
                if std::mem::take(&mut self.has_lease) {
                    bind_to_process(&self.desk, self.process.take());
                }
                Ok(Vec::new())
            }
            ["info"] => Ok(describe(&self.desk)),
            ["alive"] => self.desk.alive().map(|()| Vec::new()),
            ["log"] => Ok(vec![tail(&self.desk.plan.log())]),
            ["sessions"] => Ok(vec![self.desk.sessions()?]),
            ["freeze", target, template, copies] => self.freeze(Path::new(target), template, copies),
            ["leave"] => {
                let is_last = std::mem::take(&mut self.has_lease) && self.desk.leave();
                Ok(vec![(if is_last { "ending" } else { "staying" }).to_owned()])
            }
            ["stop"] => {
                self.desk.close();
                Ok(vec!["ending".to_owned()])
            }
            _ => Err(Error::new(Kind::Invalid, format!("the supervisor knows no request {fields:?}"))),
        }
    }

    fn lease(&mut self) -> Result<Vec<String>> {
        if !self.has_lease && !self.desk.lease() {
            return Err(Error::new(Kind::Stopped, "the cluster is being stopped"));
        }
        self.has_lease = true;
        Ok(describe(&self.desk))
    }

    fn take(&mut self, name: Option<&str>) -> Result<Vec<String>> {
        let name = self.desk.take(name)?;
        self.databases.push(name.clone());
        Ok(vec![name])
    }

    /// Turns the cluster into a prepared one: the template is closed to strays, copies of it are laid ready, the server shuts
    /// down in order, and its data directory is packed. The cluster ends with that.
    fn freeze(&mut self, target: &Path, template: &str, copies: &str) -> Result<Vec<String>> {
        let mut note = vec![template.to_owned()];
        if !template.is_empty() {
            self.databases.clear();
            let name = identifier(template);
            self.desk.admin(&format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false"))?;
            self.desk.empty(template)?;
            for number in 0..copies.parse().unwrap_or(0u32) {
                let copy = format!("hermetic_ready_{number}");
                self.desk.copy(&copy, template)?;
                note.push(copy);
            }
        }
        let own = self.desk.admin("SELECT oid FROM pg_database WHERE datname = 'postgres'")?;
        let own = own.into_iter().flatten().flatten().next().unwrap_or_default();
        self.desk.shut_down()?;
        let failed = || io(Kind::Cache, format!("cannot write {}", target.display()));
        let fresh = target.with_extension("fresh");
        let mut file = std::fs::File::create(&fresh).map_err(failed())?;
        let note = message::encode(&note);
        archive::write(&self.desk.plan.data_dir(), &mut file, note.trim_end(), |path| phase_of(path, &own))
            .map_err(failed())?;
        std::fs::rename(&fresh, target).map_err(failed())?;
        Ok(Vec::new())
    }
}

/// What of a data directory is kept, and when it is needed: databases other than the one that the first connection goes to
/// may come later.
fn phase_of(path: &str, own_database: &str) -> Option<Phase> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_of_a_run = matches!(name, "postmaster.pid" | "postmaster.opts" | "pg_internal.init" | "current_logfiles");
    if is_of_a_run || path.starts_with("pg_stat_tmp/") {
        return None;
    }
    match path.strip_prefix("base/").and_then(|rest| rest.split_once('/')) {
        Some((database, _)) if database != own_database => Some(Phase::Later),
        _ => Some(Phase::Start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_leaves_is_not_kept_and_other_databases_come_later() {
        for path in ["postmaster.pid", "base/5/pg_internal.init", "pg_stat_tmp/global.stat"] {
            assert_eq!(phase_of(path, "5"), None, "{path}");
        }
        assert_eq!(phase_of("base/5/1249", "5"), Some(Phase::Start));
        assert_eq!(phase_of("base/4/1249", "5"), Some(Phase::Later));
        assert_eq!(phase_of("base", "5"), Some(Phase::Start));
        assert_eq!(phase_of("global/pg_control", "5"), Some(Phase::Start));
    }
}
