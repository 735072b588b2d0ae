//! Throwaway PostgreSQL for Python: conversions around the crate `pg`. Names, defaults and error classes are Python's affair.

#![allow(unsafe_code)]

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_abi::Text;
use hermetic_pg::wire::unaligned;
use hermetic_pg::{Binaries, Clock, Cluster, Error, Helper, Isolation, Kind, Options, Seed, Template};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::engine;
use crate::floor::floor_allow;

create_exception!(
    hermetic._native,
    PgError,
    PyException,
    "A failure of the PostgreSQL launcher; its arguments: kind, what, command, output, log."
);

/// While this lives, what this thread does is real, whatever sandbox is active.
struct Real;

impl Real {
    fn begin() -> Real {
        crate::real::real_begin();
        Real
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        crate::real::real_end();
    }
}

fn raise(error: &Error) -> PyErr {
    let parts = (error.kind.name(), &error.what, &error.command, &error.output, &error.log);
    PgError::new_err((parts.0.to_owned(), parts.1.clone(), parts.2.clone(), parts.3.clone(), parts.4.clone()))
}

/// Does something slow, for real, while other Python threads run.
fn detached<T: Send>(py: Python<'_>, act: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let result = py.detach(|| {
        let _real = Real::begin();
        act()
    });
    result.map_err(|error| raise(&error))
}

/// The supervisor's program lies beside this library. An installer may have dropped its permission to run, which the dynamic
/// linker does not need.
pub fn install_helper() -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let folder = engine::folder().map_err(|reason| Error::new(Kind::Unavailable, reason))?;
    let program = folder.join("hermetic-pg");
    let data = program.metadata().map_err(|error| {
        let what = format!("cannot use the supervisor's program {}: {error}", program.display());
        Error::new(Kind::Unavailable, format!("{what}; reinstall hermetic-sandbox"))
    })?;
    let helper = if data.permissions().mode() & 0o111 != 0 {
        Helper { program, words: Vec::new() }
    } else {
        let linker =
            if cfg!(target_arch = "aarch64") { "/lib/ld-linux-aarch64.so.1" } else { "/lib64/ld-linux-x86-64.so.2" };
        Helper { program: linker.into(), words: vec![program.to_string_lossy().into_owned()] }
    };
    helper.install();
    Ok(())
}

/// Shows this process's clocks to a server that follows them, or no more.
fn show_clocks(cluster: &Cluster, is_on: bool) -> Result<(), Error> {
    let Some(folder) = cluster.info().clocks() else { return Ok(()) };
    let unavailable = |reason: &str| Error::new(Kind::Unavailable, reason);
    let api = engine::attached().map_err(unavailable)?;
    let mut error = Text::new();
    let bytes = engine::slice(folder.as_os_str().as_bytes());
    // SAFETY: both texts outlive the call.
    if unsafe { (api.show_clocks)(bytes, i32::from(is_on), &raw mut error) } < 0 {
        return Err(unavailable(error.as_str()));
    }
    Ok(())
}

/// The programs of a server: `initdb`, `postgres`, and `pg_ctl` and `psql` where there are any.
type Programs = (PathBuf, PathBuf, Option<PathBuf>, Option<PathBuf>);

/// Finds a server's programs: the extra directories first, then `PATH`, then `dirs` (patterns).
#[pyfunction]
pub fn pg_find_binaries(
    py: Python<'_>,
    extra: Vec<PathBuf>,
    path: Option<String>,
    dirs: Vec<String>,
) -> PyResult<Programs> {
    let found = detached(py, || hermetic_pg::find_among(&extra, path.as_deref(), &dirs))?;
    Ok((found.initdb, found.postgres, found.pg_ctl, found.psql))
}

/// Checks the directory of a socket; returns the socket's path.
#[pyfunction]
pub fn pg_check_socket_dir(directory: PathBuf, port: u16) -> PyResult<PathBuf> {
    hermetic_pg::check_socket_dir(&directory, port).map_err(|error| raise(&error))
}

/// Checks the name of a database.
#[pyfunction]
pub fn pg_check_name(name: &str) -> PyResult<()> {
    hermetic_pg::check_name(name).map_err(|error| raise(&error))
}

/// A fresh name for a database, of real entropy.
#[pyfunction]
pub fn pg_generate_name(py: Python<'_>) -> PyResult<String> {
    detached(py, hermetic_pg::generate_name)
}

/// Removes what dead runs of this user left; returns their names.
#[pyfunction]
pub fn pg_sweep(py: Python<'_>) -> PyResult<Vec<String>> {
    detached(py, hermetic_pg::sweep)
}

/// Tables that Python shows as its own: (search directories, data parents, socket parents, settings, longest socket path).
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn pg_tables() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>, Vec<String>, usize) {
    let settings = hermetic_pg::SETTINGS.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (
        hermetic_pg::SEARCH_DIRS.to_vec(),
        hermetic_pg::DATA_PARENTS.to_vec(),
        hermetic_pg::SOCKET_PARENTS.to_vec(),
        settings,
        hermetic_pg::SUN_PATH_MAX,
    )
}

/// A running cluster.
#[pyclass(frozen)]
pub struct PgCluster {
    cluster: Cluster,
}

/// What [`PgCluster`] is started from, as Python's keywords.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    port: u16,
    superuser: String,
    maintenance_db: String,
    data_parent: Option<PathBuf>,
    socket_parent: Option<PathBuf>,
    binaries: Option<Programs>,
    start_timeout: f64,
    settings: Vec<(String, String)>,
    pool: usize,
    namespaces: bool,
    clock: String,
    seed_key: String,
    share: Option<String>,
}

impl Wanted {
    fn options(&self) -> Result<Options, Error> {
        let timeout = Duration::try_from_secs_f64(self.start_timeout).map_err(|_| {
            Error::new(
                Kind::Invalid,
                format!("start_timeout {} is not accepted: a number of seconds above 0 is", self.start_timeout),
            )
        })?;
        let clock = match self.clock.as_str() {
            "real" => Clock::Real,
            "follow" => Clock::Follow,
            other => {
                let what = format!("clock {other:?} is not accepted: \"real\" and \"follow\" are");
                return Err(Error::new(Kind::Invalid, what));
            }
        };
        let binaries = self.binaries.clone();
        Ok(Options {
            port: self.port,
            superuser: self.superuser.clone(),
            maintenance_db: self.maintenance_db.clone(),
            data_parent: self.data_parent.clone(),
            socket_parent: self.socket_parent.clone(),
            binaries: binaries.map(|(initdb, postgres, pg_ctl, psql)| Binaries { initdb, postgres, pg_ctl, psql }),
            start_timeout: timeout,
            settings: self.settings.clone(),
            pool: self.pool,
            isolation: if self.namespaces { Isolation::Namespace } else { Isolation::Copy },
            clock,
            seed_key: self.seed_key.clone(),
            ..Options::from_environment()
        })
    }
}

#[pymethods]
impl PgCluster {
    /// Starts a cluster. Where the template is not cached, the files are run in it, then `seed` is called with its URL.
    #[staticmethod]
    fn start(py: Python<'_>, wanted: Wanted, files: Vec<PathBuf>, seed: Option<Py<PyAny>>) -> PyResult<PgCluster> {
        let mut raised = None;
        let result = py.detach(|| {
            let _real = Real::begin();
            install_helper()?;
            let options = wanted.options()?;
            let mut fill = |template: &Template<'_>| fill(template, &files, seed.as_ref(), &mut raised);
            let is_seeded = !options.seed_key.is_empty();
            let fill: Option<Seed<'_>> = if is_seeded { Some(&mut fill) } else { None };
            match &wanted.share {
                Some(key) => Cluster::share(&options, fill, key),
                None => Cluster::start(&options, fill),
            }
        });
        match (result, raised) {
            (_, Some(raised)) => Err(raised),
            (Ok(cluster), None) => {
                show_clocks(&cluster, true).map_err(|error| raise(&error))?;
                Ok(PgCluster { cluster })
            }
            (Err(error), None) => Err(raise(&error)),
        }
    }

    /// A fresh database's name: the next of the pool, or one of this name.
    #[pyo3(signature = (name=None))]
    fn take(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        detached(py, || self.cluster.take(name))
    }

    /// Ends a database, if there is one of that name.
    fn retire(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.cluster.retire(name))
    }

    /// Runs statements; the rows as `psql` prints them unaligned.
    fn sql(&self, py: Python<'_>, database: &str, statements: &str) -> PyResult<String> {
        detached(py, || self.cluster.sql(database, statements).map(|rows| unaligned(&rows)))
    }

    /// Raises if the server has ended.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.cluster.check())
    }

    /// Ends this process's part of the cluster. Does nothing in a forked child, and nothing the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            // In a forked child both do nothing to its parent's.
            let shown = show_clocks(&self.cluster, false);
            self.cluster.stop();
            shown
        })
    }

    fn url(&self, database: &str) -> String {
        hermetic_pg::url(self.cluster.info(), database)
    }

    #[getter]
    fn data_dir(&self) -> &Path {
        &self.cluster.info().data_dir
    }

    #[getter]
    fn socket_dir(&self) -> &Path {
        &self.cluster.info().socket_dir
    }

    #[getter]
    fn log(&self) -> &Path {
        &self.cluster.info().log
    }

    #[getter]
    fn version(&self) -> &str {
        &self.cluster.info().version
    }

    #[getter]
    fn note(&self) -> &str {
        &self.cluster.info().note
    }
}

/// Runs the files, then the callable. It runs in the real world: what it makes is kept for other runs. Floors hold there
/// too, for `psql` as for the callable, so they let the template be reached.
fn fill(
    template: &Template<'_>,
    files: &[PathBuf],
    seed: Option<&Py<PyAny>>,
    raised: &mut Option<PyErr>,
) -> Result<(), Error> {
    let entry = format!("{}/", template.socket_dir().display());
    Python::attach(|py| floor_allow(py, &entry)).map_err(|error| {
        *raised = Some(error);
        Error::new(Kind::Unavailable, format!("the floor does not let {entry} be reached"))
    })?;
    for file in files {
        template.file(file)?;
    }
    let Some(seed) = seed else { return Ok(()) };
    Python::attach(|py| seed.call1(py, (template.url(),))).map(drop).map_err(|error| {
        *raised = Some(error);
        Error::new(Kind::Statement, "the seed raised an error")
    })
}
