//! The attribute: what it accepts, what a test inside sees, and that tests beside it see the real world.

use std::collections::HashMap;
use std::fs;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

#[hermetic::test]
fn the_clock_stands_at_the_default() {
    assert_eq!(wall(), Duration::from_secs(1_577_836_800));
    assert_eq!(SystemTime::now(), SystemTime::now(), "the wall clock does not tick");
    let begin = Instant::now();
    assert_eq!(Instant::now() - begin, Duration::from_micros(1));
}

#[hermetic::test(seed = 42, now = "2024-01-01T00:00:00Z", tick = 0)]
fn options_are_heeded() {
    assert_eq!(wall(), Duration::from_secs(1_704_067_200));
    assert_eq!(Instant::now(), Instant::now());
    assert_eq!(hermetic::current().unwrap().seed(), 42);
}

const NOW: i64 = 1_704_067_200;

#[hermetic::test(seed = NOW as i128 + 1, now = NOW, tick = 1e-3, monotonic = "fixed", order = "chaos", inherit = "off")]
fn options_may_be_expressions() {
    assert_eq!(wall(), Duration::from_secs(1_704_067_200));
    assert_eq!(hermetic::current().unwrap().seed(), 1_704_067_201);
}

#[hermetic::test(clock = "off", rng = "off", network = "off")]
fn what_is_off_is_real() {
    assert!(wall() > Duration::from_secs(1_704_067_200));
    assert!(hermetic::current().unwrap().advance(Duration::from_secs(1)).is_err());
}

#[hermetic::test(now = 1_600_000_000.5)]
fn seconds_are_a_moment() {
    assert_eq!(wall(), Duration::from_millis(1_600_000_000_500));
}

#[hermetic::test]
fn tests_may_return_results() -> Result<(), Box<dyn std::error::Error>> {
    let number: u32 = "7".parse()?;
    assert_eq!(number, 7);
    Ok(())
}

#[hermetic::test]
fn tests_may_return_codes() -> ExitCode {
    ExitCode::SUCCESS
}

#[hermetic::test]
#[should_panic(expected = "on purpose")]
fn tests_may_be_meant_to_panic() {
    panic!("on purpose");
}

#[hermetic::test]
#[ignore = "shows that the harness's own attributes are kept"]
fn tests_may_be_ignored() {
    panic!("nobody runs this");
}

#[test]
#[hermetic::test(seed = 1)]
#[should_panic(expected = "inside of")]
fn it_may_stand_below_test() {
    assert_eq!(wall(), Duration::from_secs(1_577_836_800));
    panic!("inside of a sandbox");
}

#[hermetic::test]
async fn futures_are_polled() {
    let begin = Instant::now();
    let passed = std::future::ready(()).await;
    assert_eq!(passed, ());
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[hermetic::test]
#[tokio::test(flavor = "current_thread")]
async fn tokio_makes_the_test_and_we_the_world() -> Result<(), std::num::ParseIntError> {
    assert_eq!(wall(), Duration::from_secs(1_577_836_800));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(wall() >= Duration::from_secs(1_577_836_859));
    let _: u32 = "7".parse()?;
    Ok(())
}

/// Bytes of the system, a number of rand's, the order of a map.
type Draws = (Vec<u8>, u64, Vec<u32>);

/// What a draw gives, in the ways in which programs draw.
fn draws() -> Draws {
    let mut bytes = vec![0; 16];
    getrandom::fill(&mut bytes).unwrap();
    let map: HashMap<u32, ()> = (0..16).map(|key| (key, ())).collect();
    (bytes, rand::random(), map.into_keys().collect())
}

/// Draws of two tests with one seed, in whatever order they run.
static DRAWN: Mutex<Vec<Draws>> = Mutex::new(Vec::new());

fn draw_and_compare() {
    // Of thread-local generators (rand's, a map's keys) each test has fresh ones, because each has a thread of its own.
    let drawn = draws();
    let mut others = DRAWN.lock().unwrap();
    assert!(others.iter().all(|other| *other == drawn), "{drawn:?} {others:?}");
    others.push(drawn);
}

#[hermetic::test(seed = 42)]
fn randomness_follows_from_the_seed() {
    draw_and_compare();
}

#[hermetic::test(seed = 42)]
fn randomness_follows_from_the_seed_again() {
    draw_and_compare();
}

#[hermetic::test(seed = 43)]
fn another_seed_draws_something_else() {
    let first = draws();
    assert_ne!(first.0, draws().0);
    assert!(DRAWN.lock().unwrap().iter().all(|other| other.0 != first.0 && other.1 != first.1));
}

#[hermetic::test]
fn connections_are_refused_and_told() {
    let refused = TcpStream::connect("192.0.2.1:443").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(sender.send_to(b"x", "192.0.2.1:53").is_err());
    assert!("example.com:443".to_socket_addrs().is_err());
    let told = hermetic::current().unwrap().findings();
    let subjects: Vec<(&str, Option<u16>)> = told.iter().map(|found| (found.subject.as_str(), found.port)).collect();
    assert_eq!(subjects, [("192.0.2.1", Some(443)), ("192.0.2.1", Some(53)), ("example.com", None)], "{told:?}");
    assert!(told.iter().all(|found| found.kind == hermetic::Kind::Refusal && !found.is_fatal));
}

#[hermetic::test(network = ["192.0.2.0/24"], allow_loopback = false)]
fn what_is_allowed_is_not_refused() {
    let sandbox = hermetic::current().unwrap();
    let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
    let _ = sender.send_to(b"x", "192.0.2.1:53");
    assert_eq!(sandbox.findings(), []);
    assert!(sender.send_to(b"x", "127.0.0.1:9").is_err());
    assert_eq!(sandbox.findings().len(), 1);
    sandbox.allow_network("127.0.0.1:9").unwrap();
    sender.send_to(b"x", "127.0.0.1:9").unwrap();
    assert!(sandbox.allow_network("no such:entry:at all").is_err());
}

#[hermetic::test]
fn directories_are_listed_in_order() {
    let folder = std::env::temp_dir().join(format!("hermetic-listing-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for name in ["c", "a", "b"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let time = fs::metadata(folder.join("a")).unwrap().modified().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(time.duration_since(UNIX_EPOCH).unwrap().as_secs(), 1_577_836_800);
}

#[hermetic::test]
fn children_share_the_clock() {
    thread::sleep(Duration::from_secs(86_400));
    let told = Command::new("date").args(["-u", "+%F"]).output().unwrap();
    assert_eq!(told.stdout, b"2020-01-02\n");
}

#[hermetic::test]
fn a_woken_thread_reads_no_earlier_time() {
    let (send, receive) = mpsc::channel();
    let teller = thread::spawn(move || {
        for _ in 0..1000 {
            let _ = Instant::now();
        }
        // The other thread waits by then: it has nothing else to do, and time has passed.
        thread::sleep(Duration::from_secs(1));
        send.send(Instant::now()).unwrap();
        thread::sleep(Duration::from_secs(1));
        Instant::now()
    });
    let told = receive.recv().unwrap();
    assert!(Instant::now() >= told);
    let last = teller.join().unwrap();
    assert!(Instant::now() >= last);
}

#[hermetic::test]
fn the_clock_moves_on_request() {
    let sandbox = hermetic::current().unwrap();
    let begin = Instant::now();
    sandbox.advance(Duration::from_secs(3600)).unwrap();
    assert_eq!(begin.elapsed().as_secs(), 3600);
    sandbox.set("1999-12-31T23:59:59Z").unwrap();
    assert_eq!(wall().as_secs(), 946_684_799);
    assert_eq!(sandbox.now(), SystemTime::now());
    assert!(sandbox.set("soon").is_err());
    let why: Vec<String> = sandbox.jumps().into_iter().map(|jump| jump.why).collect();
    assert_eq!(why, ["advance", "set"]);
}

#[hermetic::test(seed = 7)]
fn a_sandbox_may_be_entered_inside() {
    let outer = SystemTime::now();
    let own = hermetic::Sandbox::builder().seed(1).now("2030-01-01").enter().unwrap();
    assert!(SystemTime::now() > outer);
    assert!(hermetic::Sandbox::builder().enter().is_err_and(|error| matches!(error, hermetic::Error::Active(_))));
    assert_eq!(hermetic::current().unwrap().seed(), 1);
    drop(own);
    assert_eq!(SystemTime::now(), outer);
    assert_eq!(hermetic::current().unwrap().seed(), 7);
}

#[hermetic::test]
fn the_door_outside_is_open() {
    let really = hermetic::real::now();
    assert!(really > SystemTime::now());
    assert!(hermetic::real::scope(SystemTime::now) >= really);
    let (begin, virtually) = (hermetic::real::monotonic(), Instant::now());
    hermetic::real::sleep(Duration::from_millis(2));
    assert!(hermetic::real::monotonic() - begin >= Duration::from_millis(2));
    assert!(virtually.elapsed() < Duration::from_millis(1));
    let mut bytes = [0; 16];
    hermetic::real::fill(&mut bytes).unwrap();
    assert_ne!(bytes, [0; 16]);
}

/// A sandboxed test and a plain one that meet, each looking at its own world.
static IS_INSIDE: AtomicBool = AtomicBool::new(false);
static SEEN: AtomicU32 = AtomicU32::new(0);

#[hermetic::test]
fn a_sandbox_beside_plain_tests() {
    IS_INSIDE.store(true, Ordering::SeqCst);
    let begin = hermetic::real::monotonic();
    // Under one test thread, or where this test was chosen alone, nobody comes.
    while SEEN.load(Ordering::SeqCst) == 0 && hermetic::real::monotonic() - begin < Duration::from_millis(300) {
        hermetic::real::sleep(Duration::from_millis(1));
    }
    assert_eq!(wall(), Duration::from_secs(1_577_836_800));
    IS_INSIDE.store(false, Ordering::SeqCst);
}

#[test]
fn a_plain_test_beside_a_sandbox() {
    let begin = Instant::now();
    while !IS_INSIDE.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_millis(300) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(wall() > Duration::from_secs(1_704_067_200));
    assert!(hermetic::current().is_none());
    let slept = Instant::now();
    thread::sleep(Duration::from_millis(5));
    assert!(slept.elapsed() < Duration::from_secs(60), "no jump reaches this thread");
    // The network is as it is on this machine: nothing refuses before the kernel does.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let told = socket.send_to(b"x", "192.0.2.1:9").map_err(|error| error.kind());
    assert_ne!(told, Err(std::io::ErrorKind::ConnectionRefused));
    SEEN.fetch_add(1, Ordering::SeqCst);
}
