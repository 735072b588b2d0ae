//! Runs `spec/vectors/policy-entries.json` and `spec/vectors/policy.json`, and says how many cases of each.

use hermetic_policy::{Entry, Policy, Target};
use serde_json::Value;

fn cases(behaviour: &str) -> Vec<Value> {
    let path = format!("{}/../../spec/vectors/{behaviour}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    let mut file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["behaviour"], behaviour);
    let Value::Array(cases) = file["cases"].take() else { panic!("{path} has no cases") };
    println!("vectors {behaviour}: {} cases", cases.len());
    cases
}

#[test]
fn entries() {
    for case in cases("policy-entries") {
        let text = case["input"].as_str().unwrap();
        match (text.parse::<Entry>(), case["want"].as_str()) {
            (Ok(entry), Some(want)) => assert_eq!(entry.to_string(), want, "{}", case["id"]),
            (Err(error), None) => {
                let (said, part) = (error.to_string(), case["error"].as_str().unwrap());
                assert!(said.contains(part), "{}: {said:?} lacks {part:?}", case["id"]);
                assert_eq!(error.entry(), text, "{}", case["id"]);
            }
            (got, want) => panic!("{}: got {got:?}, want {want:?}", case["id"]),
        }
    }
}

fn policy(input: &Value) -> Policy {
    let mut policy = Policy::new(input["loopback"].as_bool().unwrap(), input["unix"].as_bool().unwrap());
    for entry in input["entries"].as_array().unwrap() {
        policy.add(entry.as_str().unwrap()).unwrap();
    }
    for (name, addresses) in input["resolved"].as_object().into_iter().flatten() {
        for address in addresses.as_array().unwrap() {
            policy.remember(name.as_bytes(), address.as_str().unwrap().parse().unwrap());
        }
    }
    policy
}

fn target(input: &Value) -> Target<'_> {
    let port = input["port"].as_u64().map(|port| u16::try_from(port).unwrap());
    if let Some(host) = input["name"].as_str() {
        return Target::Name { host: host.as_bytes(), port };
    }
    if let Some(address) = input["address"].as_str() {
        return Target::Address { ip: address.parse().unwrap(), port };
    }
    if let Some(path) = input["unix"].as_str() {
        return Target::Unix { path: path.as_bytes() };
    }
    Target::Other { family: u16::try_from(input["family"].as_u64().unwrap()).unwrap() }
}

#[test]
fn decisions() {
    for case in cases("policy") {
        let verdict = policy(&case["input"]).decide(&target(&case["input"]["target"]));
        let want = case["want"].as_str().unwrap();
        assert_eq!(if verdict.is_allowed() { "allowed" } else { "refused" }, want, "{}: {verdict:?}", case["id"]);
    }
}
