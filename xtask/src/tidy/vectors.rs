//! The form of shared vectors, as `spec/vectors/schema.json` has it.

use super::Finding;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    behaviour: String,
    origin: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    description: String,
    #[serde(rename = "input")]
    _input: Value,
    want: Option<Value>,
    error: Option<String>,
}

pub fn form(text: &str) -> Vec<Finding> {
    let file: File = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            return vec![Finding { line: error.line(), message: format!("not of the form of vectors: {error}") }]
        }
    };
    let mut problems = Vec::new();
    if file.behaviour.is_empty() || file.origin.is_empty() || file.cases.is_empty() {
        problems.push("behaviour, origin and cases must not be empty".to_owned());
    }
    let mut seen = BTreeSet::new();
    for case in &file.cases {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if case.id.is_empty() || !case.id.bytes().all(is_plain) || !seen.insert(&case.id) {
            problems.push(format!("id {:?} must be of a-z, 0-9 and -, and stand once", case.id));
        }
        if case.description.is_empty() || case.want.is_some() == case.error.is_some() {
            problems.push(format!("case {:?} needs a description, and either want or error", case.id));
        }
    }
    problems.into_iter().map(|message| Finding { line: 1, message }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_one_outcome_and_their_own_id() {
        let file = |cases: &str| format!("{{\"behaviour\": \"x\", \"origin\": \"y\", \"cases\": [{cases}]}}");
        let good = r#"{"id": "a", "description": "d", "input": 1, "want": 2}"#;
        assert!(form(&file(good)).is_empty());
        assert_eq!(form(&file(&format!("{good}, {good}"))).len(), 1);
        assert_eq!(form(&file(r#"{"id": "A", "description": "d", "input": 1}"#)).len(), 2);
        assert_eq!(form(&file(r#"{"id": "a", "descr": "d", "input": 1, "want": 2}"#)).len(), 1);
        assert_eq!(form("{").len(), 1);
    }
}
