//! Runs `spec/vectors/{credentials,environment,settings}.json`, and says how many cases of each.

use hermetic_floor::environment::plan;
use hermetic_floor::settings::{read, Raw, Settings};
use serde_json::Value;
use std::collections::BTreeMap;

fn cases(behaviour: &str) -> Vec<Value> {
    let path = format!("{}/../../spec/vectors/{behaviour}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    let mut file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["behaviour"], behaviour);
    let Value::Array(cases) = file["cases"].take() else { panic!("{path} has no cases") };
    println!("vectors {behaviour}: {} cases", cases.len());
    cases
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn credentials() {
    for case in cases("credentials") {
        let name = case["input"]["name"].as_str().unwrap();
        let settings = Settings { keep: texts(&case["input"]["keep"]), ..Settings::default() };
        let planned = plan(&[(name.to_owned(), "secret".to_owned())], "/t", &settings);
        let is_removed = planned.changes.iter().any(|change| change.name == name && change.value.is_none());
        assert_eq!(if is_removed { "removed" } else { "stays" }, case["want"], "{}", case["id"]);
    }
}

#[test]
fn environment() {
    for case in cases("environment") {
        let input = &case["input"];
        let before: BTreeMap<String, String> = serde_json::from_value(input["variables"].clone()).unwrap();
        let before: Vec<(String, String)> = before.into_iter().collect();
        let (preserve, keep) = (texts(&input["preserve"]), texts(&input["keep"]));
        let planned = plan(&before, "/t", &Settings { preserve, keep, ..Settings::default() });
        let mut after: BTreeMap<String, String> = before.into_iter().collect();
        for change in planned.changes {
            match change.value {
                Some(value) => drop(after.insert(change.name, value)),
                None => drop(after.remove(&change.name)),
            }
        }
        for (name, want) in case["want"].as_object().unwrap() {
            let want = want.as_str().map(|text| text.replace("{root}", "/t"));
            assert_eq!(after.get(name), want.as_ref(), "{}: {name}", case["id"]);
        }
    }
}

#[test]
fn settings() {
    for case in cases("settings") {
        let raw = |value: &Value| match value {
            Value::String(text) => Raw::Text(text.clone()),
            list => Raw::List(texts(list)),
        };
        let given = case["input"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), raw(value))).collect();
        match (read(&given), case["error"].as_str()) {
            (Err(problems), Some(part)) => {
                assert!(problems.iter().any(|text| text.contains(part)), "{}: {problems:?}", case["id"]);
            }
            (Ok(read), None) => {
                for (name, want) in case["want"].as_object().unwrap() {
                    assert_eq!(&field(&read, name), want, "{}: {name}", case["id"]);
                }
            }
            (got, want) => panic!("{}: got {got:?}, want {want:?}", case["id"]),
        }
    }
}

fn field(settings: &Settings, name: &str) -> Value {
    match name {
        "sockets" => settings.sockets.clone().into(),
        "socket_allowlist" => settings.socket_allowlist.clone().into(),
        "unix_socket_allowlist" => settings.unix_socket_allowlist.clone().into(),
        "loopback" => settings.loopback.clone().into(),
        "sandbox_required" => settings.sandbox_required.into(),
        "threshold" => settings.threshold.into(),
        "runner_command" => settings.runner_command.clone().into(),
        "preserve" => settings.preserve.clone().into(),
        other => panic!("the runner does not know the setting {other}"),
    }
}
