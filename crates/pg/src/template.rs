//! Making prepared clusters: `initdb` once, a template database filled once, both kept in the cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::archive::Phase;
use crate::cache::{key, Cache};
use crate::cluster::{url, Cluster};
use crate::error::{io, Error, Kind, Result};
use crate::options::{Isolation, Options};
use crate::place::check_space;
use crate::plan::{Plan, Source};
use crate::server::lower_of;
use crate::wire::unaligned;

/// The database that a seed fills.
const TEMPLATE: &str = "hermetic_template";
/// Copies of a filled template that a prepared cluster holds ready.
const COPIES: &str = "1";

/// A template database that is being filled. What a seed is given.
pub struct Template<'a> {
    cluster: &'a Cluster,
    psql: Option<PathBuf>,
}

/// Fills a template: what a cluster is started with where its template may not be in the cache.
pub type Seed<'a> = &'a mut dyn FnMut(&Template<'_>) -> Result<()>;

impl Template<'_> {
    /// The URL of the template database, for any client.
    pub fn url(&self) -> String {
        url(self.cluster.info(), TEMPLATE)
    }

    /// The directory of the template's socket.
    pub fn socket_dir(&self) -> &Path {
        &self.cluster.info().socket_dir
    }

    /// Runs statements in the template.
    ///
    /// # Errors
    /// [`Kind::Statement`].
    pub fn sql(&self, statements: &str) -> Result<String> {
        self.cluster.sql(TEMPLATE, statements).map(|rows| unaligned(&rows))
    }

    /// Runs a file of SQL in the template: by `psql` where the machine has it, so that dumps with data and its own commands
    /// work, else by our own client.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a file that cannot be read; [`Kind::Statement`] with the message and the place in the file.
    pub fn file(&self, path: &Path) -> Result<()> {
        let failed = || io(Kind::Invalid, format!("cannot read the seed {}", path.display()));
        let text = std::fs::read_to_string(path).map_err(failed())?;
        let Some(psql) = &self.psql else {
            return self.sql(&text).map(drop);
        };
        let mut command = Command::new(psql);
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(), "-f"]).arg(path);
        // Nothing of the caller's connection settings may reach it.
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C").env("PSQL_PAGER", "");
        let done = command.stdin(Stdio::null()).output();
        let done = done.map_err(io(Kind::Unavailable, format!("cannot run {}", psql.display())))?;
        if done.status.success() {
            return Ok(());
        }
        let error = Error::new(Kind::Statement, format!("the seed {} failed", path.display()));
        let output = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(error.of_command(format!("{} -f {}", psql.display(), path.display())).with_output(output))
    }
}

/// The entry of the cache for a plan, made where it is missing. `plan` starts the cluster that makes it.
///
/// # Errors
/// As for starting a cluster; [`Kind::Cache`] where a missing entry cannot be written; what the seed says.
pub(crate) fn prepare(cache: &Cache, options: &Options, plan: &Plan, seed: Option<Seed<'_>>) -> Result<PathBuf> {
    let facts = [plan.version.as_str(), plan.superuser.as_str()];
    let base = key(&facts);
    let entry = if options.seed_key.is_empty() { base.clone() } else { key(&[&base, &options.seed_key]) };
    if cache.find(&entry).is_none() {
        make(cache, options, plan, &base, None)?;
        if let Some(seed) = seed.filter(|_| entry != base) {
            make(cache, options, &seeded(cache, plan, &base), &entry, Some(seed))?;
        }
    }
    let file = cache.path(&entry);
    if options.isolation == Isolation::Namespace {
        lay_open(cache, &entry, &file)?;
    }
    Ok(file)
}

fn seeded(cache: &Cache, plan: &Plan, base: &str) -> Plan {
    Plan { source: Source::Prepared(cache.path(base)), ..plan.clone() }
}

fn make(cache: &Cache, options: &Options, plan: &Plan, entry: &str, seed: Option<Seed<'_>>) -> Result<()> {
    if cache.find(entry).is_some() {
        return Ok(());
    }
    let _lock = cache.lock(entry)?;
    if cache.find(entry).is_some() {
        // Another run made it while we waited.
        return Ok(());
    }
    cache.tidy(entry);
    let parent = plan.run.run_dir.parent().unwrap_or(Path::new("/"));
    check_space(parent, crate::place::ROOM_BYTES * 2)?;
    let plan = Plan { pool: 0, isolation: Isolation::Copy, share: None, follower: None, ..plan.renamed()? };
    let cluster = Cluster::launch(&plan)?;
    let template = if seed.is_some() { TEMPLATE } else { "" };
    if let Some(seed) = seed {
        cluster.take(Some(TEMPLATE))?;
        seed(&Template { cluster: &cluster, psql: options.psql(&plan) })?;
    }
    cluster.request(&["freeze", &cache.path(entry).to_string_lossy(), template, COPIES])?;
    cluster.stop();
    Ok(())
}

/// Unpacks an entry beside its file, for overlays.
fn lay_open(cache: &Cache, entry: &str, file: &Path) -> Result<()> {
    let lower = lower_of(file);
    if lower.is_dir() {
        return Ok(());
    }
    let _lock = cache.lock(entry)?;
    if lower.is_dir() {
        return Ok(());
    }
    let fresh = file.with_extension("lower.fresh");
    let _ = std::fs::remove_dir_all(&fresh);
    let failed = || io(Kind::Cache, format!("cannot unpack {}", file.display()));
    std::fs::create_dir(&fresh).map_err(failed())?;
    let archive = crate::archive::Archive::open(file).map_err(failed())?;
    archive.make_directories(&fresh, None).map_err(failed())?;
    archive.unpack(&fresh, Phase::Start, None, 2).map_err(failed())?;
    archive.unpack(&fresh, Phase::Later, None, 2).map_err(failed())?;
    std::fs::rename(&fresh, &lower).map_err(failed())
}
