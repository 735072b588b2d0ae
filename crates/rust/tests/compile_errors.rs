//! What the compiler says to a wrong attribute. Each case is a small program; its errors come from expanding the attribute, so
//! nothing but the macro is needed to compile it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A use of the attribute, the line that is marked, and what is said of it.
const CASES: &[(&str, &str)] = &[
    (
        "#[hermetic_macros::test(sede = 42)] fn it() {}",
        "unknown option sede; accepted are seed, now, tick, clock, rng, network, allow_loopback, allow_unix, strict_replay, \
         spin_limit, monotonic, network_strict, order, inherit",
    ),
    ("#[hermetic_macros::test(42)] fn it() {}", "options are given by name: write seed = 42 or the like, not 42"),
    ("#[hermetic_macros::test(seed)] fn it() {}", "the option seed has no value: write seed = …"),
    ("#[hermetic_macros::test(seed = )] fn it() {}", "the option seed has no value: write seed = …"),
    ("#[hermetic_macros::test(seed = 1, seed = 2)] fn it() {}", "the option seed is there twice"),
    ("#[hermetic_macros::test(seed = \"x\")] fn it() {}", "seed = \"x\" does not fit; accepted is an integer"),
    (
        "#[hermetic_macros::test(now = \"2024-13-01\")] fn it() {}",
        "now = \"2024-13-01\" is no time; accepted is an ISO 8601 text such as 2020-01-01T00:00:00Z",
    ),
    (
        "#[hermetic_macros::test(now = \"1969-01-01\")] fn it() {}",
        "now = \"1969-01-01\" is outside the virtual clock; accepted are times from 1970 to 2262-04-11",
    ),
    (
        "#[hermetic_macros::test(tick = 100_000)] fn it() {}",
        "tick = 100_000 does not fit; accepted is seconds from 0 to 86400; 0 freezes the monotonic clocks",
    ),
    ("#[hermetic_macros::test(clock = \"real\")] fn it() {}", "accepted is \"virtual\" or \"off\""),
    ("#[hermetic_macros::test(rng = \"seed\")] fn it() {}", "accepted is \"all\" or \"off\""),
    ("#[hermetic_macros::test(allow_unix = 1)] fn it() {}", "allow_unix = 1 does not fit; accepted is true or false"),
    ("#[hermetic_macros::test(spin_limit = -1)] fn it() {}", "accepted is an integer from 0; 0 switches the detector off"),
    (
        "#[hermetic_macros::test(network = \"api.example.com\")] fn it() {}",
        "network = \"api.example.com\" is no such word (for one entry write [\"api.example.com\"])",
    ),
    ("#[hermetic_macros::test(network = [\"host:99999\"])] fn it() {}", "host:99999"),
    ("#[hermetic_macros::test(network = [443])] fn it() {}", "network entry 443 is no text"),
    ("#[hermetic_macros::test] struct It;", "#[hermetic::test] stands before a function"),
    ("#[hermetic_macros::test] fn it(number: u32) {}", "a test takes no arguments: nobody would pass them"),
    ("#[hermetic_macros::test] fn it<T>() {}", "a test is not generic: nobody would choose the types"),
];

/// The compiled macro beside this test.
fn macros() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
        name.starts_with("libhermetic_macros-") && name.ends_with(".so")
    };
    let newest = entries.filter(is_ours).max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.expect("cargo builds the macro before this test")
}

/// What the compiler says of a program.
fn errors(program: &str, folder: &Path, macros: &Path) -> String {
    let source = folder.join("case.rs");
    fs::write(&source, program).unwrap();
    let rustc = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let rustc = rustc.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("rustc"));
    let mut command = Command::new(rustc);
    command.args(["--edition=2021", "--crate-type=lib", "--emit=metadata", "--extern"]);
    command.arg(format!("hermetic_macros={}", macros.display())).arg("--out-dir").arg(folder).arg(&source);
    let told = command.output().unwrap();
    assert!(!told.status.success(), "this was to be refused: {program}");
    String::from_utf8(told.stderr).unwrap()
}

#[test]
fn mistakes_are_named_where_they_stand() {
    let folder = std::env::temp_dir().join(format!("hermetic-compile-errors-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let macros = macros();
    for (program, message) in CASES {
        let told = errors(program, &folder, &macros);
        assert!(told.contains(message), "{program}\n{told}");
        let errors = told.lines().filter(|line| line.starts_with("error") && !line.contains("aborting")).count();
        assert_eq!(errors, 1, "one mistake, one error: {program}\n{told}");
    }
    // The mark is under the mistake, and not under the whole attribute.
    let told = errors("#[hermetic_macros::test(seed = 1, clock = \"real\")] fn it() {}", &folder, &macros);
    assert!(told.lines().any(|line| line.trim_start_matches(['|', ' ']) == "^^^^^^"), "{told}");
    fs::remove_dir_all(folder).unwrap();
}
