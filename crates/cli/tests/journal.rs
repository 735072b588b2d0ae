//! `hermetic journal` as a user meets it: what is printed, and the exit codes.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use hermetic_cli::{run, Exit, Terminal};
use hermetic_journal::{finish, Clock, Encoder, Event, Form, Journal};

struct Answer {
    exit: Exit,
    out: String,
    err: String,
}

fn hermetic(args: &[&str]) -> Answer {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut terminal = Terminal { out: &mut out, err: &mut err, width: None, color: false };
    let exit = run(&args, &mut terminal);
    // Folders differ from machine to machine; snapshots hold names only.
    let clean = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&format!("{}/", folder().display()), "");
    Answer { exit, out: clean(out), err: clean(err) }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Writes a file for one test and returns its path.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = folder().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// A raw journal of a test that reads the clock at `line`, then draws, then ends with a remark.
fn raw(seed: &str, readings_ns: &[i64], line: u32, remark: &str) -> Vec<u8> {
    let head = format!(
        r#"{{"hermetic": "1.0.0", "test": "test_a.py::test_x", "created_at_ns": 0, "config": {{"seed": "{seed}"}}}}"#
    );
    let mut raw = Vec::new();
    let mut encoder = Encoder::start(&mut raw, head.as_bytes()).unwrap();
    let mut add = |event: Event<'_>| encoder.append(&mut raw, &event).unwrap();
    add(Event::Site { id: 1, file: "test_a.py", function: "test_x", line: 3, importing: false });
    add(Event::Site { id: 2, file: "test_a.py", function: "test_x", line, importing: false });
    for &value_ns in readings_ns {
        add(Event::Clock { thread: 0, site: 1, clock: Clock::Wall, value_ns, importing: false });
    }
    add(Event::Refusal { thread: 0, site: 2, subject: "api.example.com", port: 443 });
    add(Event::Note { thread: 0, text: remark });
    raw
}

#[test]
fn help_and_version() {
    let texts: Vec<String> = [
        &["--help"][..],
        &["journal", "--help"],
        &["journal", "show", "--help"],
        &["journal", "diff", "--help"],
        &["journal", "verify", "-h"],
    ]
    .iter()
    .map(|args| {
        let answer = hermetic(args);
        assert_eq!((answer.exit, answer.err.as_str()), (Exit::Ok, ""));
        format!("$ hermetic {}\n{}", args.join(" "), answer.out)
    })
    .collect();
    insta::assert_snapshot!("help", texts.join("\n"));
    assert_eq!(hermetic(&["-V"]).out, format!("hermetic {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(hermetic(&[]).exit, Exit::Usage);
    assert_eq!(hermetic(&["journal"]).exit, Exit::Usage);
}

#[test]
fn mistakes_name_the_value_and_the_way_out() {
    let foreign = file("foreign.bin", b"GIF89a");
    let older = file("older.json", br#"{"format":"hermetic-journal","version":1}"#);
    let newer = file("newer.json", br#"{"format":"hermetic-journal","version":7}"#);
    let empty = file("empty.journal", b"");
    let mut texts = Vec::new();
    for (exit, args) in [
        (Exit::Usage, &["jurnal"][..]),
        (Exit::Usage, &["--verbose"]),
        (Exit::Usage, &["journal", "list"]),
        (Exit::Usage, &["journal", "show"]),
        (Exit::Usage, &["journal", "show", "a", "b"]),
        (Exit::Usage, &["journal", "show", "--jsn", "a"]),
        (Exit::Usage, &["journal", "show", "--json=yes", "a"]),
        (Exit::Usage, &["journal", "show", "--json", "--full", "a"]),
        (Exit::Usage, &["journal", "diff", "a"]),
        (Exit::Usage, &["journal", "verify"]),
        (Exit::Unreadable, &["journal", "show", "no such file"]),
        (Exit::Unreadable, &["journal", "show", "/"]),
        (Exit::Unreadable, &["journal", "show", &foreign]),
        (Exit::Unreadable, &["journal", "show", &older]),
        (Exit::Unreadable, &["journal", "diff", &newer, &foreign]),
        (Exit::Unreadable, &["journal", "show", &empty]),
    ] {
        let answer = hermetic(args);
        assert_eq!((answer.exit, answer.out.as_str()), (exit, ""), "{args:?}");
        let args = args.join(" ").replace(&format!("{}/", folder().display()), "");
        texts.push(format!("$ hermetic {args}\n{}", answer.err));
    }
    insta::assert_snapshot!("mistakes", texts.join("\n"));
}

#[test]
fn show_prints_every_form_alike() {
    let raw = raw("7", &[1_577_836_800_000_000_000, 1_577_836_800_000_250_000], 9, "done");
    let kept = hermetic(&["journal", "show", &file("show.journal", &finish(&raw, Form::BINARY).unwrap())]);
    assert_eq!((kept.exit, kept.err.as_str()), (Exit::Ok, ""));
    insta::assert_snapshot!("show", kept.out);
    for name in ["show.json", "show.json.gz", "show.journal.gz"] {
        let bytes = finish(&raw, Form::from_path(name.as_ref())).unwrap();
        assert_eq!(hermetic(&["journal", "show", &file(name, &bytes)]).out, kept.out);
    }
    let unfinished = hermetic(&["journal", "show", &file("show.raw", &raw)]).out;
    assert_eq!(unfinished.strip_prefix(&kept.out).unwrap().lines().count(), 1, "one line says that it is unfinished");
    let json = hermetic(&["journal", "show", "--json", &file("show2.raw", &raw)]).out;
    assert_eq!(Journal::decode(json.as_bytes()).unwrap().raw(), raw);
}

#[test]
fn diff_shows_where_runs_part() {
    let left = file("left.journal", &raw("1", &[5, 6, 7], 9, "done"));
    let right = file("right.journal", &raw("2", &[5, 8, 9], 10, "undone"));
    let answer = hermetic(&["journal", "diff", &left, &right]);
    assert_eq!((answer.exit, answer.err.as_str()), (Exit::Found, ""));
    insta::assert_snapshot!("diff", answer.out);
    let same = hermetic(&["journal", "diff", &left, &left]);
    assert_eq!(same.exit, Exit::Ok);
    assert!(same.out.ends_with("thread 0: same, 5 events\n\nthe same events\n"), "{}", same.out);
}

#[test]
fn verify_tells_each_file_apart() {
    let whole = raw("1", &[5], 9, "done");
    let finished = finish(&whole, Form::BINARY).unwrap();
    let mut damaged = finished.clone();
    damaged[28] ^= 1;
    let mut odd = Vec::new();
    let mut encoder = Encoder::start(&mut odd, b"{}").unwrap();
    encoder.append(&mut odd, &Event::Refusal { thread: 4, site: 9, subject: "a", port: 1 }).unwrap();
    let files = [
        file("verify-finished.journal", &finished),
        file("verify-raw.journal", &whole),
        file("verify-damaged.journal", &damaged),
        file("verify-cut.journal", &finished[..finished.len() - 3]),
        file("verify-odd.journal", &odd),
    ];
    let verify = |files: &[&str]| hermetic(&[&["journal", "verify"], files].concat());
    assert_eq!(verify(&[&files[0], &files[1]]).exit, Exit::Ok);
    let all = verify(&files.each_ref().map(String::as_str));
    assert_eq!(all.exit, Exit::Found);
    insta::assert_snapshot!("verify", all.out);
    let missing = verify(&[&files[2], "no such file", &files[0]]);
    assert_eq!(missing.exit, Exit::Unreadable);
    assert!(missing.out.contains("verify-finished.journal: whole"), "goes on after a missing file: {}", missing.out);
}

#[test]
fn a_closed_pipe_is_quiet() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let path = file("pipe.journal", &raw("1", &[5], 9, "done"));
    let mut err = Vec::new();
    let mut terminal = Terminal { out: &mut Closed, err: &mut err, width: None, color: true };
    assert_eq!(run(&["journal".into(), "show".into(), path.into()], &mut terminal), Exit::Ok);
    assert!(err.is_empty());
}
