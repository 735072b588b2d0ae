//! What a supervisor is told: every decision, made already. The supervisor applies it and decides nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::identity::Identity;
use crate::message;
use crate::options::Isolation;
use crate::registry::Run;

/// Where the data directory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `initdb` makes it.
    Initdb,
    /// It is unpacked from this file, or, in namespaces, laid over what was unpacked beside it.
    Prepared(PathBuf),
}

/// The folder in which clients show their clocks, beside the socket: their paths are short, and the server can reach it.
pub(crate) fn clocks_in(socket_dir: &Path) -> PathBuf {
    socket_dir.join("clocks")
}

/// A decided start of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub run: Run,
    /// Where the run's file is.
    pub registry: PathBuf,
    /// The file that names this run to those who share it; it is removed with the run.
    pub share: Option<PathBuf>,
    pub initdb: PathBuf,
    pub postgres: PathBuf,
    pub version: String,
    pub source: Source,
    pub identity: Identity,
    pub isolation: Isolation,
    /// The library through which the server follows its clients' clocks, if it does.
    pub follower: Option<PathBuf>,
    pub port: u16,
    pub superuser: String,
    pub maintenance_db: String,
    pub settings: Vec<(String, String)>,
    pub pool: usize,
    pub start_timeout: Duration,
}

impl Plan {
    pub fn data_dir(&self) -> PathBuf {
        self.run.run_dir.join("data")
    }

    /// The folder in which clients show their clocks.
    pub fn clocks(&self) -> PathBuf {
        clocks_in(&self.run.socket_dir)
    }

    pub fn log(&self) -> PathBuf {
        self.run.run_dir.join("server.log")
    }

    /// The plan as a message.
    pub fn encode(&self) -> String {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let source = match &self.source {
            Source::Initdb => String::new(),
            Source::Prepared(file) => path(file),
        };
        let mut fields = vec![
            "start".to_owned(),
            self.run.name.clone(),
            path(&self.run.run_dir),
            path(&self.run.socket_dir),
            self.run.owner.to_string(),
            path(&self.registry),
            self.share.as_ref().map(path).unwrap_or_default(),
            path(&self.initdb),
            path(&self.postgres),
            self.version.clone(),
            source,
            self.identity.encode(),
            (if self.isolation == Isolation::Namespace { "namespace" } else { "copy" }).to_owned(),
            self.port.to_string(),
            self.superuser.clone(),
            self.maintenance_db.clone(),
            self.pool.to_string(),
            self.start_timeout.as_millis().to_string(),
            self.follower.as_ref().map(path).unwrap_or_default(),
        ];
        fields.extend(self.settings.iter().map(|(name, value)| format!("{name}={value}")));
        message::encode(&fields)
    }

    /// Reads what [`Plan::encode`] wrote.
    ///
    /// # Errors
    /// [`Kind::Stopped`] for a message that is no plan.
    pub fn decode(line: &str) -> Result<Plan> {
        let fields = message::decode(line);
        Plan::from_fields(&fields).ok_or_else(|| Error::new(Kind::Stopped, "the supervisor was told no plan it knows"))
    }

    fn from_fields(fields: &[String]) -> Option<Plan> {
        let (fixed, settings) = fields.split_at_checked(19)?;
        let path = |at: usize| Some(PathBuf::from(&fixed[at])).filter(|path: &PathBuf| path.is_absolute());
        if fixed[0] != "start" {
            return None;
        }
        Some(Plan {
            run: Run {
                name: fixed[1].clone(),
                run_dir: path(2)?,
                socket_dir: path(3)?,
                supervisor: 0,
                owner: fixed[4].parse().ok()?,
            },
            registry: path(5)?,
            share: path(6),
            initdb: path(7)?,
            postgres: path(8)?,
            version: fixed[9].clone(),
            source: path(10).map_or(Source::Initdb, Source::Prepared),
            identity: Identity::decode(&fixed[11])?,
            isolation: if fixed[12] == "namespace" { Isolation::Namespace } else { Isolation::Copy },
            port: fixed[13].parse().ok()?,
            superuser: fixed[14].clone(),
            maintenance_db: fixed[15].clone(),
            pool: fixed[16].parse().ok()?,
            start_timeout: Duration::from_millis(fixed[17].parse().ok()?),
            follower: path(18),
            settings: settings
                .iter()
                .map(|setting| setting.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_travel() {
        let plan = Plan {
            run: Run {
                name: "0123456789ab".to_owned(),
                run_dir: "/a b".into(),
                socket_dir: "/s".into(),
                supervisor: 0,
                owner: 7,
            },
            registry: "/r".into(),
            share: None,
            initdb: "/i".into(),
            postgres: "/p".into(),
            version: "postgres (PostgreSQL) 15.1".to_owned(),
            source: Source::Prepared("/c\t".into()),
            identity: Identity::Mapped,
            isolation: Isolation::Namespace,
            follower: Some("/l".into()),
            port: 5432,
            superuser: "post\tgres".to_owned(),
            maintenance_db: "postgres".to_owned(),
            settings: vec![("a".to_owned(), "b=c".to_owned())],
            pool: 8,
            start_timeout: Duration::from_secs(60),
        };
        assert_eq!(Plan::decode(&plan.encode()), Ok(plan.clone()));
        let other =
            Plan { follower: None, source: Source::Initdb, share: Some("/x".into()), settings: Vec::new(), ..plan };
        assert_eq!(Plan::decode(&other.encode()), Ok(other));
        assert!(Plan::decode("stop\n").is_err());
    }
}
