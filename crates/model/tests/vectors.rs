//! Runs `spec/vectors/seeds.json` and `spec/vectors/streams.json`, and says how many cases of each.

use hermetic_model::seed;
use hermetic_model::stream::{Key, Pedigree, Purpose, Stream};
use serde_json::Value;
use std::fmt::Write;

fn run(behaviour: &str, actual: impl Fn(&Value) -> String) {
    let path = format!("{}/../../spec/vectors/{behaviour}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["behaviour"], behaviour);
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        assert_eq!(Value::from(actual(&case["input"])), case["want"], "{behaviour}: {}", case["id"]);
    }
    println!("vectors {behaviour}: {} cases", cases.len());
}

#[test]
fn seeds() {
    run("seeds", |input| {
        let base = input["base"].as_str().unwrap().parse().unwrap();
        seed::for_test(input["node_id"].as_str().unwrap(), base).to_string()
    });
}

fn purpose(name: &str) -> Purpose {
    let find = |purpose: &Purpose| match purpose {
        Purpose::HashSeed => name == "hash_seed",
        other => format!("{other:?}").eq_ignore_ascii_case(name),
    };
    Purpose::ALL.into_iter().find(find).unwrap_or_else(|| panic!("no purpose {name}"))
}

#[test]
fn streams() {
    run("streams", |input| {
        let key = Key::from_seed(input["seed"].as_str().unwrap().as_bytes());
        let path = input["path"].as_array().unwrap();
        let pedigree = path.iter().fold(Pedigree::ROOT, |parent, number| parent.child(number.as_u64().unwrap()));
        let mut stream = Stream::new(&key, pedigree, purpose(input["purpose"].as_str().unwrap()));
        stream.seek(input["position"].as_u64().unwrap());
        let mut bytes = vec![0; input["len"].as_u64().unwrap() as usize];
        stream.fill(&mut bytes);
        bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
    });
}
