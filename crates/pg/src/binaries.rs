//! Finding the server's programs: `initdb` and `postgres` of one release, from one directory.
//!
//! `psql` and `pg_ctl` are named where they exist, because users ask for them; nothing here runs them, but for seeds.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Where server programs are looked for after `PATH`. A `*` stands for a release; the newest, by number, comes first.
pub const SEARCH_DIRS: [&str; 12] = [
    "/usr/bin",
    "/usr/local/bin",
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/libexec/postgresql*",
    "/usr/lib64/pgsql/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/opt/local/lib/postgresql*/bin",
];

/// What a server directory must hold.
pub const REQUIRED: [&str; 2] = ["initdb", "postgres"];

const REMEDY: &str = "install the server package (Debian and Ubuntu: postgresql; Fedora: postgresql-server; Alpine: \
                      postgresql; Homebrew: postgresql), or name its directory";

/// The programs of one release. `initdb` and `postgres` lie in one directory, the others where they were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    pub initdb: PathBuf,
    pub postgres: PathBuf,
    pub pg_ctl: Option<PathBuf>,
    pub psql: Option<PathBuf>,
}

impl Binaries {
    /// The programs in `directory`, which may be a directory of links to the real one.
    ///
    /// # Errors
    /// [`Kind::Unavailable`], naming the program that is missing.
    pub fn in_directory(directory: &Path) -> Result<Binaries> {
        let initdb = program(directory, "initdb").ok_or_else(|| lacks(directory, "initdb"))?;
        // Debian's links name one program at a time: the server lies beside what `initdb` really is.
        let real = initdb.canonicalize().unwrap_or_else(|_| initdb.clone());
        let home = real.parent().unwrap_or(directory);
        let beside = |name| program(home, name).or_else(|| program(directory, name));
        let (postgres, pg_ctl) = (beside("postgres"), beside("pg_ctl"));
        // A directory of links may lack the server itself; a start will say where it is missing.
        if postgres.is_none() && pg_ctl.is_none() {
            return Err(lacks(directory, "postgres"));
        }
        let postgres = postgres.unwrap_or_else(|| home.join("postgres"));
        Ok(Binaries { psql: beside("psql"), pg_ctl, initdb, postgres })
    }

    /// The directory that `initdb` was found in.
    pub fn directory(&self) -> &Path {
        self.initdb.parent().unwrap_or(Path::new("/"))
    }
}

fn lacks(directory: &Path, name: &str) -> Error {
    Error::new(Kind::Unavailable, format!("{} holds no program {name}: {REMEDY}", directory.display()))
}

/// Finds a release: the extra directories in their order, then `PATH`, then [`SEARCH_DIRS`].
///
/// # Errors
/// [`Kind::Unavailable`] with every place that was looked in.
pub fn find_binaries(extra: &[PathBuf], path: Option<&str>) -> Result<Binaries> {
    find_among(extra, path, &SEARCH_DIRS)
}

/// As [`find_binaries`], with other places than [`SEARCH_DIRS`].
///
/// # Errors
/// As [`find_binaries`].
pub fn find_among<S: AsRef<str>>(extra: &[PathBuf], path: Option<&str>, dirs: &[S]) -> Result<Binaries> {
    let on_path = path.unwrap_or("").split(':').filter(|part| part.starts_with('/')).map(PathBuf::from);
    let usual = dirs.iter().flat_map(|pattern| expand(pattern.as_ref()));
    let mut seen = BTreeSet::new();
    let places: Vec<PathBuf> =
        extra.iter().cloned().chain(on_path).chain(usual).filter(|place| seen.insert(place.clone())).collect();
    let mut client_only = None;
    for place in places.iter().filter(|place| place.is_dir()) {
        if let Ok(binaries) = Binaries::in_directory(place) {
            return Ok(binaries);
        }
        client_only = client_only.or_else(|| program(place, "psql"));
    }
    let looked: Vec<String> =
        places.iter().filter(|place| place.is_dir()).map(|place| place.display().to_string()).collect();
    let looked = if looked.is_empty() { "(no candidate directory exists)".to_owned() } else { looked.join(", ") };
    let client = client_only.map_or(String::new(), |psql| {
        format!("; {} is there, but the client package alone is not enough", psql.display())
    });
    Err(Error::new(
        Kind::Unavailable,
        format!(
            "PostgreSQL is not usable on this machine: no directory holds the server's programs (initdb, postgres, pg_ctl; \
             psql beside them): looked in {looked}{client}; {REMEDY}"
        ),
    ))
}

fn program(directory: &Path, name: &str) -> Option<PathBuf> {
    let path = directory.join(name);
    let data = path.metadata().ok()?;
    (data.is_file() && data.permissions().mode() & 0o111 != 0).then_some(path)
}

/// The directories that a pattern with at most one `*` stands for, the newest release first.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (parent, start) = before.rsplit_once('/').unwrap_or(("", before));
    let rest = after.trim_start_matches('/');
    let names = std::fs::read_dir(format!("{parent}/")).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = names
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix(start)?;
            let path = if rest.is_empty() { entry.path() } else { entry.path().join(rest) };
            Some((numbers(release), path))
        })
        .collect();
    found.sort_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The numbers in a release's name, so that 18 comes after 9.6.
fn numbers(text: &str) -> Vec<u32> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fake(directory: &Path, names: &[&str]) {
        fs::create_dir_all(directory).unwrap();
        for name in names {
            fs::write(directory.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hermetic-pg-binaries-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn the_newest_release_is_chosen_by_number() {
        let root = scratch("number");
        for release in ["9.6", "18", "10"] {
            fake(&root.join(release).join("bin"), &["initdb", "postgres"]);
        }
        let found = find_among(&[], None, &[format!("{}/*/bin", root.display())]).unwrap();
        assert_eq!(found.directory(), root.join("18/bin"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_argument_comes_before_the_path_and_one_directory_serves_all() {
        let root = scratch("order");
        fake(&root.join("path"), &["initdb", "postgres", "psql"]);
        fake(&root.join("extra"), &["initdb", "postgres"]);
        fake(&root.join("half"), &["initdb"]);
        let path = format!("{0}/half:{0}/path", root.display());
        let found = find_among::<&str>(&[root.join("extra")], Some(&path), &[]).unwrap();
        assert_eq!(found.directory(), root.join("extra"));
        assert_eq!(found.psql, None);
        let found = find_among::<&str>(&[], Some(&path), &[]).unwrap();
        assert_eq!(found.directory(), root.join("path"));
        assert_eq!(found.postgres, root.join("path/postgres"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_missing_is_said_with_the_places_and_the_package() {
        let root = scratch("missing");
        fake(&root, &["psql"]);
        let error = find_among::<&str>(std::slice::from_ref(&root), Some(""), &[]).unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable);
        for part in [root.to_str().unwrap(), "client package alone", "install the server package"] {
            assert!(error.what.contains(part), "{part}: {}", error.what);
        }
        let nothing = find_among::<&str>(&[], None, &[]).unwrap_err();
        assert!(nothing.what.contains("no candidate directory exists"));
        fs::remove_dir_all(root).unwrap();
    }
}
