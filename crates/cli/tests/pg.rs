//! `hermetic pg` as a shell sees it: answers, exit codes, and that nothing is left. Skipped with its reason on a machine without
//! PostgreSQL, unless `HERMETIC_PROMISES` names `postgres`.

use std::process::{Command, Output, Stdio};

fn hermetic(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermetic"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A text member of an answer.
fn member(answer: &str, name: &str) -> String {
    let start = answer.split_once(&format!("\"{name}\": \"")).unwrap_or_else(|| panic!("no {name} in {answer}")).1;
    start.split('"').next().unwrap_or("").to_owned()
}

fn has_server() -> bool {
    let found = hermetic(&["pg", "run", "--", "true"]);
    if found.status.success() {
        return true;
    }
    let is_promised = std::env::var("HERMETIC_PROMISES").is_ok_and(|words| words.contains("postgres"));
    assert!(!is_promised && out(&found).contains("\"unavailable\""), "{}{}", out(&found), err(&found));
    println!("skipped: {}", err(&found));
    false
}

#[test]
fn a_command_has_a_cluster_and_its_own_exit_code() {
    if !has_server() {
        return;
    }
    let script = "test \"$APP_DB\" = \"$HERMETIC_PG_URL\" && echo $APP_DB && exit 7";
    let done = hermetic(&["pg", "run", "--database", "--dsn-env", "APP_DB", "--", "sh", "-c", script]);
    assert_eq!(done.status.code(), Some(7), "{}", err(&done));
    assert!(out(&done).starts_with("postgresql://postgres@/test_"), "{}", out(&done));
    let missing = hermetic(&["pg", "run", "--", "/nonexistent/program"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("/nonexistent/program"), "{}", err(&missing));
}

#[test]
fn a_lasting_cluster_is_listed_used_and_stopped() {
    if !has_server() {
        return;
    }
    let started = out(&hermetic(&["pg", "start"]));
    assert_eq!(started.lines().count(), 1);
    let run = member(&started, "run");
    assert!(out(&hermetic(&["pg", "list"])).contains(&run));
    let made = out(&hermetic(&["pg", "create", &run, "orders"]));
    assert_eq!(member(&made, "name"), "orders");
    let again = hermetic(&["pg", "create", &run, "orders"]);
    assert_eq!((again.status.code(), member(&out(&again), "kind").as_str()), (Some(5), "statement"));
    assert_eq!(member(&out(&hermetic(&["pg", "drop", &run, "orders"])), "dropped"), "orders");
    assert_eq!(member(&out(&hermetic(&["pg", "stop", &run])), "stopped"), run);
    assert!(!out(&hermetic(&["pg", "list"])).contains(&run));
    assert!(!std::path::Path::new(&member(&started, "socket_dir")).exists());
}

#[test]
fn a_cluster_ends_with_its_owner() {
    if !has_server() {
        return;
    }
    let mut owner = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let started = out(&hermetic(&["pg", "start", "--owner", &owner.id().to_string()]));
    let socket_dir = member(&started, "socket_dir");
    assert!(std::path::Path::new(&socket_dir).exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    // Each listing takes a moment; none of them waits.
    let is_gone =
        (0..500).any(|_| hermetic(&["pg", "list"]).status.success() && !std::path::Path::new(&socket_dir).exists());
    assert!(is_gone, "{socket_dir} is still there");
}

#[test]
fn mistakes_are_told_in_both_ways() {
    for (arguments, part) in [
        (&["pg", "no-such"][..], "one of: run, start, stop"),
        (&["pg", "run"], "needs a command"),
        (&["pg", "stop"], "--all"),
        (&["pg", "stop", "0"], "pg list"),
        (&["pg", "start", "--set", "x"], "NAME=VALUE"),
        (&["pg", "start", "--nope"], "unknown option --nope"),
        (&["pg", "start", "word"], "takes no word"),
        (&["pg", "create"], "hermetic pg create RUN [NAME]"),
    ] {
        let done = hermetic(arguments);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        assert!(err(&done).contains(part), "{arguments:?}: {}", err(&done));
    }
    let done = hermetic(&["pg", "start", "--port", "0"]);
    assert_eq!((done.status.code(), member(&out(&done), "kind").as_str()), (Some(5), "invalid"));
}
