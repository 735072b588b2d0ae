//! The guard, for use without the attribute: entering, leaving, errors, and whose turn it is.

use hermetic::option::{Clock, Rng};
use hermetic::{Error, Sandbox};
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hermetic-guard-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_world_is_real_before_and_after() {
    let before = SystemTime::now();
    let sandbox = Sandbox::builder().now("2021-06-01").enter().unwrap();
    assert!(SystemTime::now() < before);
    thread::sleep(Duration::from_secs(3600));
    let report = sandbox.leave().unwrap();
    assert!(SystemTime::now() >= before);
    assert_eq!(report.elapsed, Duration::from_secs(3600));
    assert_eq!(report.jumps.len(), 1);
    assert_eq!((report.threads, report.findings.len(), report.journal), (0, 0, None));
}

#[test]
fn a_panic_leaves_as_well() {
    let told = std::panic::catch_unwind(|| {
        let _sandbox = Sandbox::builder().enter().unwrap();
        panic!("on purpose");
    });
    assert!(told.is_err() && hermetic::current().is_none());
    drop(Sandbox::builder().enter().unwrap());
}

#[test]
fn a_seed_is_fresh_or_chosen() {
    let seed = || Sandbox::builder().enter().unwrap().seed();
    assert_ne!(seed(), seed());
    let sandbox = Sandbox::builder().seed(-7).enter().unwrap();
    assert_eq!(sandbox.seed(), -7);
}

/// Some crates ask once for the address of a function of libc, and keep it: it must be one that can be answered.
#[test]
fn what_was_used_outside_before_is_answered_inside() {
    let draw = || {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).unwrap();
        bytes
    };
    let inside = || {
        let _sandbox = Sandbox::builder().seed(3).enter().unwrap();
        draw()
    };
    let outside = draw();
    assert_eq!(inside(), inside());
    assert!(outside != inside() && outside != draw());
}

#[test]
fn wrong_options_are_named_at_the_entry() {
    let error = |builder: hermetic::Builder| builder.enter().unwrap_err().to_string();
    assert_eq!(
        error(Sandbox::builder().now("someday")),
        "now = \"someday\" is no time; accepted is an ISO 8601 text such as 2020-01-01T00:00:00Z"
    );
    assert!(error(Sandbox::builder().tick(1e9)).starts_with("tick = 1000000000: accepted is"));
    assert!(error(Sandbox::builder().network(["host:99999"])).contains("host:99999"));
    assert!(error(Sandbox::builder().record("a").replay("b")).contains("exclude each other"));
    assert!(hermetic::current().is_none());
}

#[test]
fn sandboxes_do_not_nest() {
    let _sandbox = Sandbox::builder().enter().unwrap();
    let inner = Sandbox::builder().enter();
    assert!(matches!(inner, Err(Error::Active(_))), "{inner:?}");
    // A thread of the sandbox is inside as well.
    thread::spawn(|| assert!(matches!(Sandbox::builder().enter(), Err(Error::Active(_))))).join().unwrap();
}

#[test]
fn other_threads_wait_for_their_turn_in_the_real_world() {
    let (send, receive) = mpsc::channel();
    let other = thread::spawn(move || {
        let begin: SystemTime = receive.recv().unwrap();
        let sandbox = Sandbox::builder().now("2031-01-01").enter().unwrap();
        assert!(hermetic::real::now() >= begin);
        assert!(SystemTime::now() > begin);
        drop(sandbox);
    });
    let sandbox = Sandbox::builder().now("2021-01-01").enter().unwrap();
    send.send(hermetic::real::now()).unwrap();
    for _ in 0..100 {
        thread::sleep(Duration::from_secs(3600));
        assert!(hermetic::current().is_some());
    }
    drop(sandbox);
    other.join().unwrap();
}

#[test]
fn a_thread_that_has_left_is_no_part_of_anothers_sandbox() {
    drop(Sandbox::builder().enter().unwrap());
    let before = SystemTime::now();
    let (is_entered, entered) = mpsc::channel();
    let (may_leave, leave) = mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let sandbox = Sandbox::builder().enter().unwrap();
        is_entered.send(()).unwrap();
        // A sandboxed thread that waits for one outside waits in real time: nobody inside can end it.
        hermetic::real::scope(|| leave.recv().unwrap());
        drop(sandbox);
    });
    entered.recv().unwrap();
    assert!(SystemTime::now() >= before && hermetic::current().is_none());
    may_leave.send(()).unwrap();
    other.join().unwrap();
}

#[test]
fn fatal_findings_are_an_error_and_a_panic() {
    let swallow = || {
        let sandbox = Sandbox::builder().network_strict(true).enter().unwrap();
        let _ = TcpStream::connect("192.0.2.1:443");
        sandbox
    };
    let Err(Error::Findings(found)) = swallow().leave() else { panic!("a refusal is fatal here") };
    assert_eq!((found[0].kind, found[0].port), (hermetic::Kind::Refusal, Some(443)));
    let told = std::panic::catch_unwind(|| drop(swallow())).unwrap_err();
    let text = told.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("hermetic: ") && text.contains("192.0.2.1:443"), "{text}");
}

#[test]
fn what_is_recorded_is_replayed() {
    let folder = folder("replay");
    let look = || {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).unwrap();
        let begin = Instant::now();
        (bytes, SystemTime::now(), begin.elapsed(), thread::spawn(SystemTime::now).join().unwrap())
    };
    for name in ["a.journal", "b.json", "c.json.gz"] {
        let path = folder.join(name);
        let recording = Sandbox::builder().record(&path).enter().unwrap();
        let told = look();
        assert_eq!(recording.leave().unwrap().journal.as_deref(), Some(path.as_path()));
        assert!(told.1 > SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200), "a recording is real");
        let replaying = Sandbox::builder().replay(&path).enter().unwrap();
        assert_eq!(look(), told, "{name}");
        replaying.leave().unwrap();
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "no scratch file stays");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_replay_that_departs_is_an_error() {
    let folder = folder("departs");
    let path = folder.join("a.journal");
    let recording = Sandbox::builder().record(&path).enter().unwrap();
    let _ = SystemTime::now();
    recording.leave().unwrap();
    let replaying = Sandbox::builder().replay(&path).enter().unwrap();
    let _ = (SystemTime::now(), SystemTime::now());
    let Err(Error::Findings(found)) = replaying.leave() else { panic!("one reading was recorded, two were made") };
    assert_eq!(found[0].kind, hermetic::Kind::ReplayExhausted, "{found:?}");
    let replaying = Sandbox::builder().replay(&path).enter().unwrap();
    let Err(Error::Findings(found)) = replaying.leave() else { panic!("the reading was not asked for") };
    assert_eq!(found[0].kind, hermetic::Kind::ReplayLeftover, "{found:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_was_chosen_stays_chosen_while_recording() {
    let folder = folder("pinned");
    let path = folder.join("a.journal");
    let recording = Sandbox::builder().seed(5).now("2024-01-01").record(&path).enter().unwrap();
    let then = SystemTime::now();
    let mut drawn = [0; 8];
    getrandom::fill(&mut drawn).unwrap();
    recording.leave().unwrap();
    assert_eq!(then.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 1_704_067_200);
    let plain = Sandbox::builder().seed(5).enter().unwrap();
    let mut again = [0; 8];
    getrandom::fill(&mut again).unwrap();
    plain.leave().unwrap();
    assert_eq!(drawn, again);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_no_journal_is_refused_by_its_name() {
    let folder = folder("none");
    let path = folder.join("a.journal");
    let error = || Sandbox::builder().replay(&path).enter().unwrap_err().to_string();
    assert!(error().starts_with("cannot read the journal "), "{}", error());
    fs::write(&path, "no journal").unwrap();
    assert!(error().starts_with("cannot use the journal ") && error().contains("a.journal"), "{}", error());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn parts_can_be_left_real() {
    let sandbox = Sandbox::builder().clock(Clock::Off).rng(Rng::Off).enter().unwrap();
    assert!(SystemTime::now() > SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200));
    assert!(sandbox.set(0).is_err());
    assert!(TcpStream::connect("192.0.2.1:443").is_err());
    assert_eq!(sandbox.leave().unwrap().findings.len(), 1);
}
