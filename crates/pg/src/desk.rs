//! What a supervisor keeps for its clients: the pool of databases, what is to be dropped, who still needs the cluster.
//!
//! Everything slow is done by threads of their own: makers fill the pool, one drops. A hand-out takes from the pool.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::name::{check_name, generate_name, random_hex};
use crate::place::socket_path_for;
use crate::plan::Plan;
use crate::server::tail;
use crate::version::Version;
use crate::wire::{code, identifier, literal, Connection, Failure, Row};

/// Threads that make databases: as many as help on two processors.
const MAKERS: usize = 2;
/// How often a database's sessions are looked for while they end; 0.5 ms apart.
const SESSION_POLLS: u32 = 10_000;
const SESSION_POLL: Duration = Duration::from_micros(500);
/// How often a database is renamed again when somebody connects to it in between.
const RENAME_TRIES: u32 = 20;

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<String>,
    making: usize,
    wanted: usize,
    failed: Option<Error>,
    gone: VecDeque<String>,
    died: Option<Error>,
    leases: usize,
    is_closing: bool,
    is_asked_to_shut_down: bool,
    was_shut_down: Option<Result<()>>,
}

/// The desk. Shared by all threads of a supervisor.
pub struct Desk {
    pub plan: Plan,
    /// The database that new ones are copies of.
    template: String,
    strategy: &'static str,
    state: Mutex<State>,
    changed: Condvar,
    admin: Mutex<Option<Connection>>,
    /// Wakes the main thread.
    wake: Mutex<UnixStream>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that failed while it held the lock left values that are still good.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub fn new(plan: Plan, template: Option<String>, connection: Connection, wake: UnixStream) -> Arc<Desk> {
        let strategy = Version::parse(&plan.version).map_or("", |version| version.strategy());
        let state = State { wanted: plan.pool.min(1), leases: usize::from(plan.run.owner != 0), ..State::default() };
        Arc::new(Desk {
            template: template.unwrap_or_else(|| "template1".to_owned()),
            strategy,
            state: Mutex::new(state),
            changed: Condvar::new(),
            admin: Mutex::new(Some(connection)),
            wake: Mutex::new(wake),
            plan,
        })
    }

    /// Takes over databases that came with the prepared cluster, and starts the threads.
    pub fn open(self: &Arc<Desk>, baked: &[String]) -> Result<()> {
        for name in baked.iter().take(self.plan.pool) {
            let fresh = generate_name()?;
            self.admin(&format!("ALTER DATABASE {} RENAME TO {}", identifier(name), identifier(&fresh)))?;
            self.state().ready.push_back(fresh);
        }
        for _ in 0..MAKERS.min(self.plan.pool) {
            let desk = self.clone();
            std::thread::spawn(move || desk.make());
        }
        let desk = self.clone();
        std::thread::spawn(move || desk.drop_gone());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_main(&self) {
        use std::io::Write;
        // A full pipe will wake it too.
        let _ = locked(&self.wake).write(&[1]);
    }

    // --- what clients ask for -----------------------------------------------------------------------------------

    /// A fresh database: from the pool, under its own name or the one asked for.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a name outside the closed set; [`Kind::Statement`] for one that exists; what the makers met.
    pub fn take(&self, name: Option<&str>) -> Result<String> {
        name.map_or(Ok(()), check_name)?;
        if let Some(name) = name.filter(|name| self.is_own(name)) {
            return Err(Error::new(
                Kind::Statement,
                format!("the database {name} exists already: it is the cluster's own"),
            ));
        }
        if self.plan.pool == 0 {
            let name = name.map_or_else(generate_name, |name| Ok(name.to_owned()))?;
            self.alive()?;
            self.create(&mut locked(&self.admin), &name)?;
            return Ok(name);
        }
        let pooled = self.pop()?;
        let Some(name) = name else { return Ok(pooled) };
        let renaming = format!("ALTER DATABASE {} RENAME TO {}", identifier(&pooled), identifier(name));
        if let Err(error) = self.admin(&renaming) {
            self.change(|state| state.ready.push_front(pooled));
            return Err(error.of_command(format!("CREATE DATABASE {}", identifier(name))));
        }
        Ok(name.to_owned())
    }

    fn pop(&self) -> Result<String> {
        let mut state = self.state();
        state.wanted = self.plan.pool;
        self.changed.notify_all();
        loop {
            if let Some(died) = &state.died {
                return Err(died.clone());
            }
            if let Some(name) = state.ready.pop_front() {
                self.changed.notify_all();
                return Ok(name);
            }
            if let Some(failed) = state.failed.take() {
                self.changed.notify_all();
                return Err(failed);
            }
            if state.is_closing {
                return Err(Error::new(Kind::Stopped, "the cluster is being stopped"));
            }
            state = self.wait(state);
        }
    }

    /// Ends a database: its sessions end, its name is free when this returns, its files go in the background.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a name outside the closed set, or of the cluster's own; [`Kind::Died`].
    pub fn retire(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if self.is_own(name) {
            return Err(Error::new(Kind::Invalid, format!("the database {name} is the cluster's own and stays")));
        }
        self.alive()?;
        let gone = format!("gone_{}", random_hex(8)?);
        let renaming = format!("ALTER DATABASE {} RENAME TO {}", identifier(name), identifier(&gone));
        for _ in 0..RENAME_TRIES {
            self.end_sessions(name)?;
            let result = self.query(&mut locked(&self.admin), &renaming);
            match result {
                Ok(_) => break,
                Err(failure) if failure.code() == code::NO_SUCH_DATABASE => return Ok(()),
                // Object in use: somebody has connected anew.
                Err(failure) if failure.code() == "55006" => {}
                Err(failure) => return Err(self.explain(&renaming, &failure)),
            }
        }
        self.change(|state| state.gone.push_back(gone));
        Ok(())
    }

    fn end_sessions(&self, name: &str) -> Result<()> {
        let here = format!("FROM pg_stat_activity WHERE datname = {}", literal(name));
        let ending = self.admin(&format!("SELECT pg_terminate_backend(pid) {here}"))?;
        if ending.is_empty() {
            return Ok(());
        }
        for _ in 0..SESSION_POLLS {
            if self.admin(&format!("SELECT 1 {here}"))?.is_empty() {
                break;
            }
            std::thread::sleep(SESSION_POLL);
        }
        Ok(())
    }

    /// Ends all sessions of a database, and waits until they have ended.
    ///
    /// # Errors
    /// As [`Desk::admin`].
    pub fn empty(&self, name: &str) -> Result<()> {
        self.end_sessions(name)
    }

    /// Makes a database as a copy of another.
    ///
    /// # Errors
    /// As [`Desk::admin`].
    pub fn copy(&self, name: &str, template: &str) -> Result<()> {
        let (name, template) = (identifier(name), identifier(template));
        self.admin(&format!("CREATE DATABASE {name} TEMPLATE {template}{}", self.strategy)).map(drop)
    }

    /// Asks the main thread to shut the server down in order, and waits until it has.
    ///
    /// # Errors
    /// [`Kind::Start`] with the log if it does not end so.
    pub fn shut_down(&self) -> Result<()> {
        *locked(&self.admin) = None;
        self.change(|state| state.is_asked_to_shut_down = true);
        self.wake_main();
        let mut state = self.state();
        loop {
            if let Some(result) = state.was_shut_down.take() {
                return result;
            }
            state = self.wait(state);
        }
    }

    /// For the main thread: whether the server is to be shut down in order now. True once.
    pub fn take_order_to_shut_down(&self) -> bool {
        std::mem::take(&mut self.state().is_asked_to_shut_down)
    }

    /// For the main thread: how that went.
    pub fn report_shut_down(&self, result: Result<()>) {
        self.change(|state| state.was_shut_down = Some(result));
    }

    fn is_own(&self, name: &str) -> bool {
        [self.plan.maintenance_db.as_str(), "postgres", "template0", "template1", &self.template].contains(&name)
    }

    /// Who holds connections, by database: for the error that there is none left.
    ///
    /// # Errors
    /// [`Kind::Died`], or the server's refusal.
    pub fn sessions(&self) -> Result<String> {
        let rows = self.admin(
            "SELECT current_setting('max_connections'), coalesce(datname, '-'), count(*), \
             string_agg(DISTINCT nullif(application_name, ''), ', ') FROM pg_stat_activity \
             WHERE backend_type = 'client backend' GROUP BY 2 ORDER BY 3 DESC, 2",
        )?;
        let text = |row: &Row, at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let lines = rows.iter().map(|row| format!("{}: {} ({})", text(row, 1), text(row, 2), text(row, 3)));
        let limit = rows.first().map(|row| text(row, 0)).unwrap_or_default();
        Ok(format!("max_connections = {limit}; sessions by database:\n{}", lines.collect::<Vec<_>>().join("\n")))
    }

    // --- leases -------------------------------------------------------------------------------------------------

    /// One more needs the cluster. False if it is ending already.
    pub fn lease(&self) -> bool {
        let mut state = self.state();
        if state.is_closing {
            return false;
        }
        state.leases += 1;
        true
    }

    /// One less needs it. True if nobody does any more, which ends a cluster that is not lasting.
    pub fn leave(&self) -> bool {
        let is_last = {
            let mut state = self.state();
            state.leases = state.leases.saturating_sub(1);
            state.is_closing |= state.leases == 0 && self.plan.run.owner != 0;
            state.is_closing
        };
        if is_last {
            self.close();
        }
        is_last
    }

    /// The cluster ends, whoever needs it.
    pub fn close(&self) {
        self.change(|state| state.is_closing = true);
        self.wake_main();
    }

    pub fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Notes that the server has ended by itself.
    pub fn bury(&self, error: Error) {
        self.change(|state| state.died = Some(error));
    }

    /// # Errors
    /// [`Kind::Died`] if the server has ended by itself.
    pub fn alive(&self) -> Result<()> {
        self.state().died.clone().map_or(Ok(()), Err)
    }

    // --- threads ------------------------------------------------------------------------------------------------

    fn make(&self) {
        let mut connection = None;
        loop {
            let mut state = self.state();
            let is_full = |state: &State| state.ready.len() + state.making >= state.wanted || state.failed.is_some();
            while !state.is_closing && state.died.is_none() && is_full(&state) {
                state = self.wait(state);
            }
            if state.is_closing || state.died.is_some() {
                return;
            }
            state.making += 1;
            drop(state);
            let made = generate_name().and_then(|name| {
                self.create(&mut connection, &name)?;
                self.warm(&mut connection, &name);
                Ok(name)
            });
            self.change(|state| {
                state.making -= 1;
                match made {
                    Ok(name) => state.ready.push_back(name),
                    Err(error) => state.failed = Some(error),
                }
            });
        }
    }

    fn create(&self, connection: &mut Option<Connection>, name: &str) -> Result<()> {
        let statement =
            format!("CREATE DATABASE {} TEMPLATE {}{}", identifier(name), identifier(&self.template), self.strategy);
        self.query(connection, &statement).map(drop).map_err(|failure| self.explain(&statement, &failure))
    }

    /// The first session in a database builds its caches: done here, it is not the test's.
    fn warm(&self, connection: &mut Option<Connection>, name: &str) {
        let socket = self.socket();
        if let Ok(mut first) = Connection::open(&socket, &self.plan.superuser, name) {
            let _ = first.query("SELECT 1");
        }
        let here = format!("SELECT 1 FROM pg_stat_activity WHERE datname = {}", literal(name));
        for _ in 0..SESSION_POLLS {
            match self.query(connection, &here) {
                Ok(rows) if !rows.is_empty() => std::thread::sleep(SESSION_POLL),
                _ => return,
            }
        }
    }

    fn drop_gone(&self) {
        let mut connection = None;
        loop {
            let mut state = self.state();
            while state.gone.is_empty() && !state.is_closing {
                state = self.wait(state);
            }
            if state.is_closing || state.died.is_some() {
                return;
            }
            let Some(name) = state.gone.pop_front() else { continue };
            drop(state);
            // What cannot be dropped goes with the cluster.
            let _ = self.query(&mut connection, &format!("DROP DATABASE IF EXISTS {}", identifier(&name)));
        }
    }

    // --- the server ---------------------------------------------------------------------------------------------

    pub fn socket(&self) -> PathBuf {
        socket_path_for(&self.plan.run.socket_dir, self.plan.port)
    }

    /// Runs a statement on the connection that is kept for clients' requests.
    ///
    /// # Errors
    /// [`Kind::Statement`], [`Kind::Died`] and what else [`Desk::explain`] finds.
    pub fn admin(&self, statement: &str) -> Result<Vec<Row>> {
        let result = self.query(&mut locked(&self.admin), statement);
        result.map_err(|failure| self.explain(statement, &failure))
    }

    /// Runs a statement on a connection that is opened where there is none, and forgotten where it broke.
    fn query(&self, slot: &mut Option<Connection>, statement: &str) -> Result<Vec<Row>, Failure> {
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => Connection::open(&self.socket(), &self.plan.superuser, "postgres")?,
        };
        let result = connection.query(statement);
        if !matches!(result, Err(Failure::Broken(_))) {
            *slot = Some(connection);
        }
        result
    }

    /// A failure as an error of ours. A broken connection may be the first sign that the server has ended.
    pub fn explain(&self, statement: &str, failure: &Failure) -> Error {
        if matches!(failure, Failure::Broken(_)) {
            let state = self.state();
            let waited = self.changed.wait_timeout_while(state, Duration::from_secs(2), |state| state.died.is_none());
            if let Some(died) = &waited.unwrap_or_else(PoisonError::into_inner).0.died {
                return died.clone();
            }
        }
        explain(statement, failure).with_log(tail(&self.plan.log()))
    }
}

/// A failure as an error of ours, by its SQLSTATE.
pub(crate) fn explain(statement: &str, failure: &Failure) -> Error {
    let kind = match failure.code() {
        code::TOO_MANY_CONNECTIONS => Kind::Connections,
        code::DISK_FULL => Kind::Space,
        _ => Kind::Statement,
    };
    let what = match kind {
        Kind::Connections => "the server has no connection left: close some, or raise max_connections in settings",
        Kind::Space => "the file system of the data directory is full: free some room, or give another data_parent",
        _ => "the statement failed",
    };
    Error::new(kind, format!("{what}\n{failure}")).of_command(statement)
}
