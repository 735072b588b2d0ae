//! A cluster, as its clients see it: decides a plan, starts the supervisor, and asks it.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{flock, FlockOperation};

use crate::binaries::find_binaries;
use crate::cache::{key, Cache};
use crate::desk::explain;
use crate::error::{io, Error, Kind, Result};
use crate::helper::Helper;
use crate::identity::Identity;
use crate::message::{self, decode_answer};
use crate::name::random_hex;
use crate::options::{Clock, Isolation, Options};
use crate::place::{
    check_socket_dir, check_space, choose_parent, free_space, socket_path_for, CLOCKS_PARENT, DATA_PARENTS, ROOM_BYTES,
    SOCKET_PARENTS,
};
use crate::plan::{clocks_in, Plan, Source};
use crate::registry::{self, Run};
use crate::template::{prepare, Seed};
use crate::wire::{code, Connection, Failure, Row};

/// What is known of a running cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pub run: String,
    pub data_dir: PathBuf,
    pub socket_dir: PathBuf,
    /// The supervisor's process.
    pub supervisor: u32,
    /// The process that the cluster serves; 0 for one that lasts.
    pub owner: u32,
    pub port: u16,
    pub superuser: String,
    pub maintenance_db: String,
    pub version: String,
    /// Something that people should know, such as the user that the server runs as; mostly empty.
    pub note: String,
    pub log: PathBuf,
}

impl Info {
    /// The path of the server's socket.
    pub fn socket_path(&self) -> PathBuf {
        socket_path_for(&self.socket_dir, self.port)
    }

    /// The folder in which processes show their clocks, if the server follows any.
    pub fn clocks(&self) -> Option<PathBuf> {
        Some(clocks_in(&self.socket_dir)).filter(|folder| folder.is_dir())
    }

    fn of_fields(fields: &[String]) -> Option<Info> {
        let [run, data_dir, socket_dir, supervisor, owner, port, superuser, maintenance_db, version, note, log] =
            fields
        else {
            return None;
        };
        Some(Info {
            run: run.clone(),
            data_dir: data_dir.into(),
            socket_dir: socket_dir.into(),
            supervisor: supervisor.parse().ok()?,
            owner: owner.parse().ok()?,
            port: port.parse().ok()?,
            superuser: superuser.clone(),
            maintenance_db: maintenance_db.clone(),
            version: version.clone(),
            note: note.clone(),
            log: log.into(),
        })
    }
}

/// The URL of a database, as libpq and the drivers take it.
///
/// ```
/// use hermetic_pg::{url, Info};
/// let info = Info { socket_dir: "/dev/shm/x".into(), port: 5432, superuser: "postgres".into(), ..Info::default() };
/// assert_eq!(url(&info, "orders"), "postgresql://postgres@/orders?host=%2Fdev%2Fshm%2Fx&port=5432");
/// ```
pub fn url(info: &Info, database: &str) -> String {
    let (user, database) = (percent(&info.superuser), percent(database));
    format!("postgresql://{user}@/{database}?host={}&port={}", percent(&info.socket_dir.to_string_lossy()), info.port)
}

fn percent(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A connection to the supervisor. It belongs to one process: a forked child makes its own.
#[derive(Debug)]
struct Link {
    process: u32,
    stream: BufReader<UnixStream>,
}

/// A running cluster. Ends with [`Cluster::stop`], with the last lease, or with the process that holds it, however that ends.
pub struct Cluster {
    info: Info,
    /// The process that holds the lease.
    process: u32,
    link: Mutex<Option<Link>>,
    /// A connection for statements to the maintenance database.
    session: Mutex<Option<(u32, Connection)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone(reason: &str) -> Error {
    Error::new(Kind::Stopped, format!("the cluster is not running: {reason}; start one"))
}

impl Cluster {
    /// Starts a cluster. With a seed, [`Options::seed_key`] must change with what the seed does.
    ///
    /// # Errors
    /// Every kind but [`Kind::Died`]; nothing is left behind.
    pub fn start(options: &Options, seed: Option<Seed<'_>>) -> Result<Cluster> {
        Cluster::begin(options, seed, None)
    }

    /// Joins the cluster that others started under the same key and options, or starts it. It ends with the last of them.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn share(options: &Options, seed: Option<Seed<'_>>, shared_key: &str) -> Result<Cluster> {
        let registry = registry::directory()?;
        let made_of = format!("{:?}", (&options.settings, options.port, options.clock));
        let name = key(&[shared_key, &options.seed_key, &made_of]);
        let path = registry.join(format!("{name}.share"));
        let failed = || io(Kind::Unavailable, format!("cannot use {}", path.display()));
        let mut options_of_lock = OpenOptions::new();
        options_of_lock.write(true).create(true).truncate(false).mode(0o600);
        let lock = options_of_lock.open(registry.join("shares")).map_err(failed())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(std::io::Error::from).map_err(failed())?;
        if let Ok(control) = std::fs::read_to_string(&path) {
            if let Ok(cluster) = Cluster::join(Path::new(&control)) {
                return Ok(cluster);
            }
        }
        let cluster = Cluster::begin(options, seed, Some(path.clone()))?;
        let control = registry::control_path(&cluster.info.socket_dir);
        std::fs::write(&path, control.to_string_lossy().as_bytes()).map_err(failed())?;
        Ok(cluster)
    }

    /// Joins a running cluster by its run's control socket; it lasts at least as long as this process needs it.
    ///
    /// # Errors
    /// [`Kind::Stopped`] if it has ended or is ending.
    pub fn join(control: &Path) -> Result<Cluster> {
        let mut link = Link::open(control)?;
        let info = link.ask(&["lease"])?;
        Cluster::of(link, &info)
    }

    /// Talks to a running cluster without keeping it.
    ///
    /// # Errors
    /// [`Kind::Stopped`] if it has ended.
    pub fn attach(control: &Path) -> Result<Cluster> {
        let mut link = Link::open(control)?;
        let info = link.ask(&["info"])?;
        Cluster::of(link, &info)
    }

    fn of(link: Link, fields: &[String]) -> Result<Cluster> {
        let info = Info::of_fields(fields).ok_or_else(|| gone("its supervisor is of another release"))?;
        Ok(Cluster { info, process: std::process::id(), link: Mutex::new(Some(link)), session: Mutex::new(None) })
    }

    fn begin(options: &Options, mut seed: Option<Seed<'_>>, share: Option<PathBuf>) -> Result<Cluster> {
        options.check()?;
        let cache = Cache::open(options.cache.as_deref())?;
        let mut plan = Plan { share, ..decide(options, &cache)? };
        // An entry can prove to be damaged only while it is unpacked: then it is made anew, once.
        for is_last in [false, true] {
            let file = match &mut seed {
                Some(seed) => prepare(&cache, options, &plan, Some(&mut **seed))?,
                None => prepare(&cache, options, &plan, None)?,
            };
            let size = file.metadata().map(|data| data.len()).unwrap_or(0);
            let parent = plan.run.run_dir.parent().unwrap_or(Path::new("/"));
            check_space(parent, size + ROOM_BYTES)?;
            plan.source = Source::Prepared(file.clone());
            match Cluster::launch(&plan) {
                Err(error) if error.kind == Kind::Cache && !is_last => {
                    let _ = std::fs::remove_file(&file);
                    plan = Plan { source: Source::Initdb, ..plan.renamed()? };
                }
                result => return result,
            }
        }
        Err(Error::new(Kind::Cache, "a prepared cluster was damaged twice"))
    }

    /// Starts a supervisor with a plan and waits until the cluster is ready.
    pub(crate) fn launch(plan: &Plan) -> Result<Cluster> {
        let helper = Helper::current()?;
        let failed = || io(Kind::Unavailable, format!("cannot start {}", helper.program.display()));
        let (own, other) = UnixStream::pair().map_err(failed())?;
        let mut command = Command::new(&helper.program);
        command.args(&helper.words).arg("supervise");
        let libraries = std::env::var_os("LD_LIBRARY_PATH");
        command.env_clear().envs(libraries.map(|path| ("LD_LIBRARY_PATH", path)));
        command.stdin(Stdio::from(OwnedFd::from(other))).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed())?;
        drop(command);
        // It detaches at once: the supervisor is no child of ours that a program's own waiting could meet.
        child.wait().map_err(failed())?;
        let mut link = Link { process: std::process::id(), stream: BufReader::new(own) };
        let told = link.stream.get_mut().write_all(plan.encode().as_bytes());
        told.map_err(|_| gone("its supervisor ended at once"))?;
        let fields = link.answer()?;
        Cluster::of(link, &fields)
    }

    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The URL of the maintenance database.
    pub fn base_url(&self) -> String {
        url(&self.info, &self.info.maintenance_db)
    }

    /// A fresh database: the next of the pool, under its own name or this one.
    ///
    /// # Errors
    /// [`Kind::Invalid`], [`Kind::Statement`] for a name that exists, [`Kind::Died`], [`Kind::Space`], [`Kind::Stopped`].
    pub fn take(&self, name: Option<&str>) -> Result<String> {
        let fields = match name {
            Some(name) => self.request(&["take", name])?,
            None => self.request(&["take"])?,
        };
        fields.into_iter().next().ok_or_else(|| gone("its supervisor gave no name"))
    }

    /// Ends a database, if there is one of that name. The name is free afterwards; sessions in it are ended.
    ///
    /// # Errors
    /// [`Kind::Invalid`], [`Kind::Died`], [`Kind::Stopped`].
    pub fn retire(&self, name: &str) -> Result<()> {
        self.request(&["retire", name]).map(drop)
    }

    /// Whether the server still runs.
    ///
    /// # Errors
    /// [`Kind::Died`] with the end of its log, or [`Kind::Stopped`].
    pub fn check(&self) -> Result<()> {
        self.request(&["alive"]).map(drop)
    }

    /// Runs statements in a database and returns all rows.
    ///
    /// # Errors
    /// [`Kind::Statement`] with the server's message; [`Kind::Connections`] with who holds them; [`Kind::Died`].
    pub fn sql(&self, database: &str, statements: &str) -> Result<Vec<Row>> {
        let result = if database == self.info.maintenance_db {
            self.kept_session(statements)
        } else {
            Connection::open(&self.info.socket_path(), &self.info.superuser, database)
                .and_then(|mut connection| connection.query(statements))
        };
        result.map_err(|failure| self.explain(statements, &failure))
    }

    fn kept_session(&self, statements: &str) -> Result<Vec<Row>, Failure> {
        let mut slot = locked(&self.session);
        let kept = slot.take().filter(|(process, _)| *process == std::process::id());
        let mut connection = match kept {
            Some((_, connection)) => connection,
            None => Connection::open(&self.info.socket_path(), &self.info.superuser, &self.info.maintenance_db)?,
        };
        let result = connection.query(statements);
        // A fresh session for the next call: settings and open transactions of this one must not reach it.
        let is_clean = result.is_ok() && connection.query("DISCARD ALL").is_ok();
        if is_clean {
            *slot = Some((std::process::id(), connection));
        }
        result
    }

    fn explain(&self, statements: &str, failure: &Failure) -> Error {
        if matches!(failure, Failure::Broken(_)) {
            // The supervisor may hear of the server's end a moment after us, so it waits a little before it answers.
            if let Err(died) = self.request(&["broken"]) {
                return died;
            }
        }
        let mut error = explain(statements, failure);
        if failure.code() == code::TOO_MANY_CONNECTIONS {
            let sessions = self.request(&["sessions"]).ok().and_then(|fields| fields.into_iter().next());
            error.output = sessions.unwrap_or_default();
        }
        if let Some(log) = self.request(&["log"]).ok().and_then(|fields| fields.into_iter().next()) {
            error.log = log;
        }
        error
    }

    /// Lets go of the cluster without ending it: from now on it lasts as long as the process that owns it, whatever becomes of
    /// connections, and databases that were taken stay. For programs that become another, or that only start a cluster.
    ///
    /// # Errors
    /// [`Kind::Stopped`].
    pub fn entrust(self) -> Result<Cluster> {
        self.request(&["entrust"])?;
        // What is left talks to the cluster but holds no lease.
        let control = registry::control_path(&self.info.socket_dir);
        *locked(&self.link) = None;
        Cluster::attach(&control)
    }

    /// Ends this process's part of the cluster, and with it the cluster if nobody else shares it: then everything is gone when
    /// this returns. Does nothing in a forked child of the process that started it, and nothing the second time.
    pub fn stop(&self) {
        self.end("leave");
    }

    /// Ends the cluster for everybody.
    pub fn stop_for_all(&self) {
        self.end("stop");
    }

    fn end(&self, word: &str) {
        if self.process != std::process::id() {
            return;
        }
        *locked(&self.session) = None;
        let Some(mut link) = locked(&self.link).take() else { return };
        let is_ending = link.ask(&[word]).is_ok_and(|fields| fields.first().is_some_and(|how| how == "ending"));
        if is_ending {
            // The connection closes with the supervisor, which is the last to go.
            let _ = link.stream.read_to_end(&mut Vec::new());
        }
    }

    /// Whether [`Cluster::stop`] has not been called.
    pub fn is_open(&self) -> bool {
        locked(&self.link).is_some()
    }

    /// Sends a request to the supervisor.
    ///
    /// # Errors
    /// What it answers; [`Kind::Stopped`] if it has gone.
    pub(crate) fn request(&self, fields: &[&str]) -> Result<Vec<String>> {
        let mut slot = locked(&self.link);
        let Some(link) = slot.as_mut() else { return Err(gone("it was stopped")) };
        if link.process != std::process::id() {
            // The inherited connection is the parent's: two processes on it would read each other's answers.
            let fresh = Link::open(&registry::control_path(&self.info.socket_dir))?;
            std::mem::forget(slot.replace(fresh));
        }
        match slot.as_mut() {
            Some(link) => link.ask(fields),
            None => Err(gone("it was stopped")),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Link {
    fn open(control: &Path) -> Result<Link> {
        let stream = crate::socket::open(control).map_err(|error| gone(&error.to_string()))?;
        Ok(Link { process: std::process::id(), stream: BufReader::new(stream) })
    }

    fn ask(&mut self, fields: &[&str]) -> Result<Vec<String>> {
        let sent = self.stream.get_mut().write_all(message::encode(fields).as_bytes());
        sent.map_err(|error| gone(&error.to_string()))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<String>> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(|error| gone(&error.to_string()))?;
        decode_answer(&line)
    }
}

/// Decides everything about a cluster but its prepared files.
fn decide(options: &Options, cache: &Cache) -> Result<Plan> {
    let binaries = match &options.binaries {
        Some(binaries) => binaries.clone(),
        None => find_binaries(&options.search, options.path.as_deref())?,
    };
    let version = cache.version_of(&binaries.postgres)?;
    let usual = |parents: &[&str]| -> Vec<PathBuf> {
        parents.iter().map(PathBuf::from).chain([options.temp_dir.clone()]).collect()
    };
    // A file system in memory that is too small (containers give 64 MiB) is passed over, unless it was asked for.
    let has_room = |path: &PathBuf| free_space(path).is_ok_and(|(free, _)| free >= 2 * ROOM_BYTES);
    let mut data_parents = usual(&DATA_PARENTS);
    data_parents.sort_by_key(|path| !has_room(path));
    let data_parent = choose_parent("data_parent", options.data_parent.as_deref(), &data_parents)?;
    let socket_parent = choose_parent("socket_parent", options.socket_parent.as_deref(), &usual(&SOCKET_PARENTS))?;
    let name = random_hex(6)?;
    let socket_dir = socket_parent.join(format!("hpg-{name}"));
    check_socket_dir(&socket_dir, options.port)?;
    let effective = rustix::process::geteuid().as_raw();
    let identity = match Identity::choose(effective, &[&data_parent, &socket_parent])? {
        // A namespace has one identity of its own; another user could not read the prepared files either.
        Identity::User { .. } if options.isolation == Isolation::Namespace => Identity::Mapped,
        identity => identity,
    };
    let owner = if options.is_lasting { 0 } else { options.owner.unwrap_or_else(std::process::id) };
    let follower = match options.clock {
        Clock::Real => None,
        Clock::Follow => Some(find_follower(&socket_parent)?),
    };
    Ok(Plan {
        follower,
        run: Run { run_dir: data_parent.join(format!("hermetic-pg-{name}")), socket_dir, name, supervisor: 0, owner },
        registry: registry::directory()?,
        share: None,
        initdb: binaries.initdb,
        postgres: binaries.postgres,
        version: version.line,
        source: Source::Initdb,
        identity,
        isolation: options.isolation,
        port: options.port,
        superuser: options.superuser.clone(),
        maintenance_db: options.maintenance_db.clone(),
        settings: options.settings.clone(),
        pool: options.pool,
        start_timeout: options.start_timeout,
    })
}

/// The library that lets a server follow clocks; it is checked that clients can show theirs beside the socket.
fn find_follower(socket_parent: &Path) -> Result<PathBuf> {
    let memory = Path::new(CLOCKS_PARENT);
    let is_same = |path: &Path| Some(path.metadata().ok()?.dev() == memory.metadata().ok()?.dev());
    if is_same(socket_parent) != Some(true) {
        let place = socket_parent.display();
        return Err(Error::new(
            Kind::Invalid,
            format!(
                "clock \"follow\" needs a socket directory in {CLOCKS_PARENT}, where clocks are shared; {place} is not"
            ),
        ));
    }
    let library = Helper::current()?.library();
    if library.is_file() {
        return Ok(library);
    }
    let what = format!("clock \"follow\" needs {}, which is missing; reinstall hermetic-sandbox", library.display());
    Err(Error::new(Kind::Unavailable, what))
}

impl Plan {
    /// The same plan for another run.
    pub(crate) fn renamed(&self) -> Result<Plan> {
        let name = random_hex(6)?;
        let beside = |path: &Path, start: &str| path.with_file_name(format!("{start}-{name}"));
        let run = Run {
            run_dir: beside(&self.run.run_dir, "hermetic-pg"),
            socket_dir: beside(&self.run.socket_dir, "hpg"),
            name,
            ..self.run.clone()
        };
        Ok(Plan { run, ..self.clone() })
    }
}

impl Options {
    /// `psql`, if the machine has it: beside the server, else on the path.
    pub(crate) fn psql(&self, plan: &Plan) -> Option<PathBuf> {
        let beside = plan.postgres.with_file_name("psql");
        let given = self.binaries.as_ref().and_then(|binaries| binaries.psql.clone());
        given.or_else(|| beside.is_file().then_some(beside))
    }
}
