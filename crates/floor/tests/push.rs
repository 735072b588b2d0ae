//! Runs `spec/vectors/push.json` against the rules, and each command for real: git of this machine, which may use no transport
//! but files, says itself whether it was about to leave.

use hermetic_floor::files::{join, Imagined};
use hermetic_floor::process::{judge, Process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/push.json");
    let mut file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let Value::Array(cases) = file["cases"].take() else { panic!("{path} has no cases") };
    println!("vectors push: {} cases", cases.len());
    cases
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn pairs(value: &Value, root: &str) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, text)| (name.clone(), text.as_str().unwrap().replace("{root}", root))).collect()
}

/// The first repository has the case's configuration.
fn repositories(input: &Value) -> Vec<String> {
    match input.get("repositories") {
        Some(list) => texts(list),
        None => vec!["r".to_owned()],
    }
}

fn process(input: &Value, root: &str) -> Process {
    let mut variables = pairs(&input["variables"], root);
    variables.insert("HOME".to_owned(), root.to_owned());
    variables.insert("GIT_CONFIG_SYSTEM".to_owned(), "/dev/null".to_owned());
    Process { words: texts(&input["words"]), folder: join(root, input["folder"].as_str().unwrap()), variables }
}

#[test]
fn the_rules_agree_with_the_vectors() {
    for case in cases() {
        let input = &case["input"];
        let mut files = Imagined(
            pairs(&input["files"], "/x").into_iter().map(|(name, text)| (format!("/x/{name}"), text)).collect(),
        );
        for (at, name) in repositories(input).iter().enumerate() {
            let config = if at == 0 { input["config"].as_str().unwrap() } else { "" };
            let folder = if name.ends_with(".git") { format!("/x/{name}") } else { format!("/x/{name}/.git") };
            for (part, text) in
                [("HEAD", "ref: refs/heads/main\n"), ("config", config), ("objects/o", ""), ("refs/r", "")]
            {
                files.0.insert(format!("{folder}/{part}"), text.to_owned());
            }
        }
        let found = judge(&process(input, "/x"), &files);
        let want =
            case["want"].as_object().map(|want| (want["remote"].as_str().unwrap(), want["url"].as_str().unwrap()));
        let got = found.as_ref().map(|push| (push.remote.as_str(), push.url.as_str()));
        assert_eq!(got, want, "{}: {}", case["id"], case["description"]);
    }
}

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]).args(words);
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("HOME", folder);
    let done = command.current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Makes the case's files, runs its command, and tells whether git was about to use a transport that it may not.
fn leaves(case: &Value, root: &Path) -> bool {
    let input = &case["input"];
    for (at, name) in repositories(input).iter().enumerate() {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        git(&folder, if name.ends_with(".git") { &["init", "-q", "--bare"] } else { &["init", "-q"] });
        if !name.ends_with(".git") {
            git(&folder, &["commit", "-q", "--allow-empty", "-m", "one"]);
            let path = folder.join(".git/config");
            let old = fs::read_to_string(&path).unwrap();
            let config = if at == 0 { input["config"].as_str().unwrap() } else { "" };
            fs::write(path, format!("{old}[push]\n\tdefault = current\n{config}")).unwrap();
        }
    }
    for (name, text) in pairs(&input["files"], root.to_str().unwrap()) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let process = process(input, root.to_str().unwrap());
    let mut command = Command::new(&process.words[0]);
    command.args(&process.words[1..]).current_dir(&process.folder).env_clear().envs(&process.variables);
    command.env("PATH", std::env::var("PATH").unwrap()).env("GIT_ALLOW_PROTOCOL", "file").stdin(Stdio::null());
    let done = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    said.contains("transport '") && said.contains("not allowed")
}

#[test]
fn the_vectors_agree_with_git() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: there is no git on this machine");
        return;
    }
    let base = std::env::temp_dir().join(format!("hermetic-floor-push-{}", std::process::id()));
    let mut differing = Vec::new();
    for case in cases() {
        let root = base.join(case["id"].as_str().unwrap());
        fs::create_dir_all(&root).unwrap();
        if leaves(&case, &root) == case["want"].is_string() {
            differing.push(format!("{}: {}", case["id"], case["description"]));
        }
    }
    fs::remove_dir_all(&base).unwrap();
    assert!(differing.is_empty(), "git does something else:\n{}", differing.join("\n"));
}
