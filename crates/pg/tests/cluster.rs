//! Clusters from start to end, on the PostgreSQL of this machine. Skipped with a reason where there is none, unless
//! `HERMETIC_PROMISES` names `postgres`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hermetic_pg::wire::unaligned;
use hermetic_pg::{find_binaries, runs, Cluster, Helper, Isolation, Kind, Options};

/// Runs are counted by some tests, so one test at a time has them.
static ALONE: Mutex<()> = Mutex::new(());

fn with_server(test: impl FnOnce(Options)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Helper { program: env!("CARGO_BIN_EXE_hermetic-pg").into(), words: Vec::new() }.install();
    let options = Options::from_environment();
    if let Err(error) = find_binaries(&[], options.path.as_deref()) {
        let is_promised = std::env::var("HERMETIC_PROMISES").is_ok_and(|words| words.contains("postgres"));
        assert!(!is_promised, "PostgreSQL was promised: {error}");
        println!("skipped: {error}");
        return;
    }
    test(options);
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hermetic-pg-test-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn value(cluster: &Cluster, database: &str, statement: &str) -> String {
    unaligned(&cluster.sql(database, statement).unwrap())
}

#[test]
fn a_cluster_lives_and_leaves_nothing() {
    with_server(|options| {
        let cluster = Cluster::start(&options, None).unwrap();
        let info = cluster.info().clone();
        assert!(info.socket_path().exists() && info.data_dir.join("PG_VERSION").exists());
        assert_eq!(value(&cluster, "postgres", "select 1, 'a b', null; select 2"), "1|a b|\n2");
        assert_eq!(value(&cluster, "postgres", "show server_encoding; show fsync"), "UTF8\noff");
        cluster.stop();
        cluster.stop();
        assert!(!info.socket_dir.exists() && !info.data_dir.parent().unwrap().exists());
        assert_eq!(cluster.take(None).unwrap_err().kind, Kind::Stopped);
        assert!(runs().unwrap().iter().all(|run| run.name != info.run));
    });
}

#[test]
fn databases_are_handed_out_and_their_names_are_free_again() {
    with_server(|options| {
        for pool in [0, 3] {
            let cluster = Cluster::start(&Options { pool, ..options.clone() }, None).unwrap();
            for _ in 0..6 {
                let name = cluster.take(None).unwrap();
                assert!(name.starts_with("test_") && name.len() == 21, "{name}");
                value(&cluster, &name, "create table t(i int)");
                cluster.retire(&name).unwrap();
                let found = format!("select count(*) from pg_database where datname = '{name}'");
                assert_eq!(value(&cluster, "postgres", &found), "0");
            }
            for _ in 0..2 {
                assert_eq!(cluster.take(Some("orders")).unwrap(), "orders");
                assert_eq!(cluster.take(Some("orders")).unwrap_err().kind, Kind::Statement);
                assert_eq!(value(&cluster, "orders", "select count(*) from pg_tables where tablename = 't'"), "0");
                cluster.retire("orders").unwrap();
            }
            cluster.retire("never_there").unwrap();
            for bad in ["orders\n", "", "a-b", "postgres", "template1"] {
                assert_eq!(cluster.retire(bad).unwrap_err().kind, Kind::Invalid, "{bad:?}");
            }
            assert_eq!(cluster.take(Some("1a")).unwrap_err().kind, Kind::Invalid);
        }
    });
}

#[test]
fn a_seed_runs_once_for_its_content() {
    with_server(|options| {
        let root = scratch("seed");
        let file = root.join("schema.sql");
        std::fs::write(&file, "create table book(name text);\ncopy book from stdin;\nfirst\nsecond\n\\.\n").unwrap();
        let options = Options { cache: Some(root.join("cache")), seed_key: "1".to_owned(), ..options };
        let mut times = 0;
        for _ in 0..2 {
            let mut seed = |template: &hermetic_pg::Template<'_>| {
                times += 1;
                template.file(&file)?;
                template.sql("insert into book values ('third')").map(drop)
            };
            let cluster = Cluster::start(&options, Some(&mut seed)).unwrap();
            for _ in 0..3 {
                let name = cluster.take(None).unwrap();
                assert_eq!(value(&cluster, &name, "select count(*) from book"), "3");
                value(&cluster, &name, "delete from book");
            }
        }
        assert_eq!(times, 1);
        let mut failing = |template: &hermetic_pg::Template<'_>| template.sql("select nope").map(drop);
        let options = Options { seed_key: "2".to_owned(), ..options };
        let error = Cluster::start(&options, Some(&mut failing)).err().unwrap();
        assert_eq!(error.kind, Kind::Statement);
        assert!(error.what.contains("nope"), "{error}");
        std::fs::remove_dir_all(root).unwrap();
    });
}

#[test]
fn a_damaged_entry_of_the_cache_is_made_anew() {
    with_server(|options| {
        let root = scratch("damage");
        let options = Options { cache: Some(root.clone()), ..options };
        Cluster::start(&options, None).unwrap().stop();
        let entry = entries(&root).pop().unwrap();
        let mut bytes = std::fs::read(&entry).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&entry, bytes).unwrap();
        let cluster = Cluster::start(&options, None).unwrap();
        assert_eq!(value(&cluster, "postgres", "select 1"), "1");
        std::fs::remove_dir_all(root).unwrap();
    });
}

fn entries(root: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(root).unwrap().flatten().map(|entry| entry.path());
    names.filter(|path| path.extension().is_some_and(|ending| ending == "cluster")).collect()
}

#[test]
fn a_server_that_dies_is_told_with_its_log() {
    with_server(|options| {
        let cluster = Cluster::start(&options, None).unwrap();
        let pid = std::fs::read_to_string(cluster.info().data_dir.join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        let error = cluster.sql("postgres", "select 1").unwrap_err();
        assert_eq!(error.kind, Kind::Died, "{error}");
        assert!(error.log.contains("ready to accept connections"), "{error}");
        assert_eq!(cluster.take(None).unwrap_err().kind, Kind::Died);
        let run_dir = cluster.info().data_dir.parent().unwrap().to_owned();
        cluster.stop();
        assert!(!run_dir.exists());
    });
}

#[test]
fn too_many_sessions_are_told_by_database() {
    with_server(|options| {
        let settings = [("max_connections", "8"), ("superuser_reserved_connections", "0")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let cluster = Cluster::start(&Options { settings, pool: 1, ..options }, None).unwrap();
        let name = cluster.take(None).unwrap();
        let socket = cluster.info().socket_path();
        let mut held = Vec::new();
        while let Ok(session) = hermetic_pg::wire::Connection::open(&socket, "postgres", &name) {
            held.push(session);
            assert!(held.len() < 20, "the server has no limit");
        }
        // The launcher's own session may end meanwhile and leave a place, which is taken as well.
        let error = loop {
            match cluster.sql(&name, "select 1") {
                Err(error) => break error,
                Ok(_) => held.extend(hermetic_pg::wire::Connection::open(&socket, "postgres", &name)),
            }
            assert!(held.len() < 20, "the server has no limit");
        };
        assert_eq!(error.kind, Kind::Connections, "{error}");
        assert!(error.output.contains(&name) && error.output.contains("max_connections = 8"), "{error}");
    });
}

#[test]
fn a_shared_cluster_ends_with_the_last_who_needs_it() {
    with_server(|options| {
        let first = Cluster::share(&options, None, "a run").unwrap();
        let second = Cluster::share(&options, None, "a run").unwrap();
        let other = Cluster::share(&options, None, "another run").unwrap();
        assert_eq!(first.info().run, second.info().run);
        assert_ne!(first.info().run, other.info().run);
        let name = first.take(None).unwrap();
        first.stop();
        assert!(second.info().data_dir.exists());
        // The databases of one who leaves go; this happens after it has left.
        let gone = format!("select count(*) from pg_database where datname = '{name}'");
        for _ in 0..1000 {
            if value(&second, "postgres", &gone) == "0" {
                break;
            }
        }
        assert_eq!(value(&second, "postgres", &gone), "0");
        second.stop();
        assert!(!second.info().data_dir.exists());
        assert_eq!(Cluster::share(&options, None, "a run").unwrap().take(Some("x")).unwrap(), "x");
    });
}

#[test]
fn in_namespaces_or_a_clear_reason() {
    with_server(|options| {
        let root = scratch("namespace");
        let options = Options { isolation: Isolation::Namespace, cache: Some(root.clone()), ..options };
        match Cluster::start(&options, None) {
            Ok(cluster) => {
                let name = cluster.take(None).unwrap();
                assert_eq!(value(&cluster, &name, "create table t(i int); select count(*) from t"), "0");
                let run_dir = cluster.info().data_dir.parent().unwrap().to_owned();
                cluster.stop();
                assert!(!run_dir.exists());
            }
            Err(error) => println!("skipped: {error}"),
        }
        std::fs::remove_dir_all(root).unwrap();
    });
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    with_server(|options| {
        let root = scratch("mistakes");
        let kind = |options: Options| Cluster::start(&options, None).err().map(|error| error.kind);
        let long = root.join("d".repeat(100));
        std::fs::create_dir(&long).unwrap();
        assert_eq!(kind(Options { socket_parent: Some(long), ..options.clone() }), Some(Kind::SocketPath));
        let nowhere = Some(PathBuf::from("/nonexistent"));
        assert_eq!(kind(Options { data_parent: nowhere, ..options.clone() }), Some(Kind::Unavailable));
        assert_eq!(kind(Options { port: 0, ..options.clone() }), Some(Kind::Invalid));
        let settings = vec![("no_such_setting".to_owned(), "1".to_owned())];
        let error = Cluster::start(&Options { settings, ..options }, None).err().unwrap();
        assert_eq!(error.kind, Kind::Start);
        assert!(error.log.contains("no_such_setting"), "{error}");
        std::fs::remove_dir_all(root).unwrap();
    });
}
