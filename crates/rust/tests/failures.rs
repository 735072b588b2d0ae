//! What a failing test tells, and what becomes of its journal: tests that fail are run in a process of their own.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The tests that fail. They are ignored unless one of the tests below asks for one.
mod failing {
    use super::*;

    #[hermetic::test]
    #[ignore = "fails on purpose"]
    fn by_a_panic() {
        println!("drew {}", rand::random::<u64>());
        panic!("on purpose");
    }

    #[hermetic::test(seed = 7)]
    #[ignore = "fails on purpose"]
    fn by_a_result() -> Result<(), String> {
        Err("on purpose".to_owned())
    }

    #[hermetic::test]
    #[ignore = "fails on purpose"]
    fn by_the_real_time() {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let bytes: [u8; 8] = rand::random();
        let other = thread::spawn(rand::random::<u64>).join().unwrap();
        panic!("{time:?} {bytes:?} {other}");
    }

    #[hermetic::test]
    #[ignore = "passes where it is recorded"]
    fn by_nothing() {
        assert!(SystemTime::now() > UNIX_EPOCH);
    }

    #[hermetic::test(network_strict = true)]
    #[ignore = "fails on purpose"]
    fn by_a_refusal_that_it_swallows() {
        let _ = TcpStream::connect("192.0.2.1:443");
    }

    #[hermetic::test]
    #[ignore = "fails in a run that is strict"]
    fn by_a_refusal() {
        let _ = TcpStream::connect("192.0.2.1:443");
    }

    #[hermetic::test]
    #[ignore = "never ends by itself"]
    fn by_a_deadlock() {
        let (_send, receive) = mpsc::channel::<()>();
        receive.recv().unwrap();
    }

    #[hermetic::test(spin_limit = 1000)]
    #[ignore = "never ends by itself"]
    fn by_a_loop() {
        let begin = SystemTime::now();
        while begin.elapsed().unwrap() < Duration::from_secs(1) {}
    }

    #[hermetic::test]
    #[ignore = "takes the process with it"]
    fn by_a_crash() {
        let _ = SystemTime::now();
        std::process::abort();
    }

    /// Its sandbox cannot be entered.
    const FAR: f64 = 1e12;

    #[hermetic::test(now = FAR)]
    #[ignore = "fails on purpose"]
    fn by_an_option() {}
}

/// Runs one of them in a process of its own.
fn run(name: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("failing::{name}"), "--ignored", "--nocapture"]);
    for name in ["HERMETIC_SEED", "HERMETIC_RECORD", "HERMETIC_REPLAY", "HERMETIC_STRICT_NETWORK", "NEXTEST"] {
        command.env_remove(name);
    }
    command.env("RUST_BACKTRACE", "0").envs(variables.iter().copied()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What stands behind a word, up to the end of its line.
fn behind<'a>(text: &'a str, word: &str) -> &'a str {
    let at = text.find(word).unwrap_or_else(|| panic!("no {word:?} in\n{text}"));
    text[at + word.len()..].lines().next().unwrap_or("").trim()
}

/// A folder of this test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("hermetic-failures-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_panic_tells_how_to_run_the_test_again_and_that_is_true() {
    let first = text(&run("by_a_panic", &[]));
    let command = behind(&first, "run this test again with\n");
    let (variable, rest) = command.split_once(' ').unwrap();
    assert_eq!(rest, "cargo test -p hermetic -- --exact failing::by_a_panic");
    let seed = variable.strip_prefix("HERMETIC_SEED=").unwrap();
    let again = text(&run("by_a_panic", &[("HERMETIC_SEED", seed)]));
    assert_eq!(behind(&first, "drew "), behind(&again, "drew "));
    let other = text(&run("by_a_panic", &[("HERMETIC_SEED", "1")]));
    assert_ne!(behind(&first, "drew "), behind(&other, "drew "));
}

#[test]
fn a_chosen_seed_needs_no_variable_and_nextest_has_words_of_its_own() {
    let told = run("by_a_result", &[("NEXTEST", "1")]);
    let told = text(&told);
    assert!(told.contains("Error: \"on purpose\""), "{told}");
    let command = behind(&told, "run this test again with\n");
    assert_eq!(command, "cargo nextest run -p hermetic -E 'test(=failing::by_a_result)'");
}

#[test]
fn a_failure_is_recorded_and_replayed() {
    let folder = Folder::new("record");
    let failed = text(&run("by_the_real_time", &[("HERMETIC_RECORD", folder.text())]));
    let names = folder.names();
    let [name] = names.as_slice() else { panic!("one journal and nothing else: {names:?}\n{failed}") };
    assert!(name.starts_with("failures-failing-by_the_real_time__") && name.ends_with("-a1.journal"), "{name}");
    let path = folder.0.join(name).to_str().unwrap().to_owned();
    let command = behind(&failed, "replay what it was told with\n");
    assert_eq!(command, format!("HERMETIC_REPLAY={path} cargo test -p hermetic -- --exact failing::by_the_real_time"));
    let replayed = text(&run("by_the_real_time", &[("HERMETIC_REPLAY", &path)]));
    assert!(replayed.contains(&format!("hermetic: replays {path}")), "{replayed}");
    let message =
        |text: &str| behind(text, ".rs:").to_owned() + text.lines().find(|line| line.contains("s [")).unwrap();
    assert_eq!(message(&failed), message(&replayed), "{replayed}");
    // Another test of the same run is none of the journal's business.
    let other = text(&run("by_a_panic", &[("HERMETIC_REPLAY", &path)]));
    assert!(!other.contains("replays"), "{other}");
}

#[test]
fn a_pass_leaves_no_journal() {
    let folder = Folder::new("pass");
    let passed = run("by_nothing", &[("HERMETIC_RECORD", folder.text())]);
    assert!(passed.status.success(), "{}", text(&passed));
    assert_eq!(folder.names(), [] as [String; 0]);
}

#[test]
fn a_crash_leaves_a_journal_that_the_next_run_names() {
    let folder = Folder::new("crash");
    run("by_a_crash", &[("HERMETIC_RECORD", folder.text())]);
    let names = folder.names();
    assert!(names.len() == 1 && names[0].starts_with("unfinished-"), "{names:?}");
    run("by_nothing", &[("HERMETIC_RECORD", folder.text())]);
    let names = folder.names();
    assert!(names.len() == 1 && names[0].starts_with("failures-failing-by_a_crash__"), "{names:?}");
}

#[test]
fn processes_that_record_side_by_side_keep_their_journals_apart() {
    let folder = Folder::new("parallel");
    let record = [("HERMETIC_RECORD", folder.text())];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run("by_a_crash", &record));
            scope.spawn(|| run("by_a_panic", &record));
        }
    });
    run("by_nothing", &record);
    let names = folder.names();
    let count =
        |test: &str| names.iter().filter(|name| name.starts_with(&format!("failures-failing-{test}__"))).count();
    assert_eq!((count("by_a_crash"), count("by_a_panic"), names.len()), (4, 4, 8), "{names:?}");
}

#[test]
fn a_refusal_decides_where_it_is_strict() {
    let told = run("by_a_refusal_that_it_swallows", &[]);
    let words = text(&told);
    assert!(!told.status.success() && words.contains("came to its end all the same"), "{words}");
    assert!(words.contains("192.0.2.1:443"), "{words}");
    let lax = run("by_a_refusal", &[]);
    assert!(lax.status.success(), "{}", text(&lax));
    let strict = run("by_a_refusal", &[("HERMETIC_STRICT_NETWORK", "1")]);
    assert!(!strict.status.success(), "{}", text(&strict));
}

#[test]
fn what_nobody_can_end_is_ended_with_its_name() {
    for (name, word) in [("by_a_deadlock", "every thread of the sandbox waits"), ("by_a_loop", "clock")] {
        let told = run(name, &[]);
        let words = text(&told);
        assert!(!told.status.success() && words.contains(word), "{words}");
        assert!(words.contains(&format!("this ends failures::failing::{name}; run it again with")), "{words}");
    }
}

#[test]
fn wrong_values_are_named() {
    let told = text(&run("by_an_option", &[]));
    assert!(
        told.contains("failures::failing::by_an_option: now = 1000000000000 is outside the virtual clock"),
        "{told}"
    );
    let told = text(&run("by_nothing", &[("HERMETIC_SEED", "many")]));
    assert!(told.contains("HERMETIC_SEED=\"many\": accepted is an integer from 0 to 2^64 - 1"), "{told}");
    let told = text(&run("by_nothing", &[("HERMETIC_REPLAY", "/nowhere.journal")]));
    assert!(told.contains("cannot read the journal /nowhere.journal"), "{told}");
}

/// One after the other in a process, in the order in which they ask.
static ORDER: Mutex<Vec<u32>> = Mutex::new(Vec::new());

macro_rules! one_at_a_time {
    ($($name:ident: $number:expr;)*) => {
        $(
            #[hermetic::test]
            fn $name() {
                ORDER.lock().unwrap().push($number);
                thread::sleep(Duration::from_secs(1));
                hermetic::real::sleep(Duration::from_millis(3));
                assert_eq!(ORDER.lock().unwrap().last(), Some(&$number), "nobody came in between");
            }
        )*
    };
}

one_at_a_time! {
    the_first: 1;
    the_second: 2;
    the_third: 3;
}
