//! The head of a journal: what was run, with which settings, on which machine. JSON, written by a front end.
//!
//! The engine treats it as bytes. What this release does not know is kept and ignored. `spec/journal.md` lists the keys of
//! `config` and `fingerprint`; they are maps here, because front ends in other languages have settings of their own.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, FORMAT_VERSION};

/// The head as values.
///
/// ```
/// let head = hermetic_journal::Head::parse(r#"{"test": "test_a.py::test_x", "config": {"seed": "7"}}"#).unwrap();
/// assert_eq!(head.test.as_deref(), Some("test_a.py::test_x"));
/// assert_eq!(head.setting("seed").unwrap(), "7");
/// assert_eq!(head.attempt, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    pub format_version: u32,
    /// Release that recorded.
    pub hermetic: String,
    /// Node id of the test; none for a sandbox outside a test.
    pub test: Option<String>,
    /// Counts from 1; a plugin that runs failed tests again raises it.
    pub attempt: u32,
    /// Real time of the recording, nanoseconds since the Unix epoch.
    pub created_at_ns: i64,
    /// The effective settings. `seed` is decimal text, because not every reader of JSON keeps large numbers.
    pub config: Map<String, Value>,
    /// The machine and the interpreter.
    pub fingerprint: Map<String, Value>,
    /// The project's root, which file names in call sites are relative to.
    pub root: Option<String>,
    /// Names of environment variables, sorted; never their values.
    pub env: Vec<String>,
    /// What later releases and other front ends add.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Default for Head {
    fn default() -> Head {
        Head {
            format_version: FORMAT_VERSION,
            hermetic: String::new(),
            test: None,
            attempt: 1,
            created_at_ns: 0,
            config: Map::new(),
            fingerprint: Map::new(),
            root: None,
            env: Vec::new(),
            other: Map::new(),
        }
    }
}

impl Head {
    /// Reads the text of a head. An [`Error::Corrupt`] counts from the start of the journal.
    pub fn parse(text: &str) -> Result<Head, Error> {
        Head::read(text).map_err(|what| Error::corrupt(crate::preamble::LEN, what))
    }

    pub(crate) fn read(text: &str) -> Result<Head, String> {
        // serde would also take a list for a struct.
        if !text.trim_start().starts_with('{') {
            return Err("the head is not a JSON object".to_string());
        }
        serde_json::from_str(text).map_err(|error| format!("the head cannot be read: {error}"))
    }

    /// The head as JSON text on one line.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("text, numbers and maps with text keys always have a JSON form")
    }

    /// A setting as people write it, if it was recorded.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.config.get(name).map(plain)
    }

    /// A fact of the fingerprint as people write it, if it was recorded and known.
    pub fn fact(&self, name: &str) -> Option<String> {
        self.fingerprint.get(name).filter(|value| !value.is_null()).map(plain)
    }
}

/// A value without the quotes of JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => crate::text::line(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null => "none".to_string(),
        Value::Bool(true) => "yes".to_string(),
        Value::Bool(false) => "no".to_string(),
        other => other.to_string(),
    }
}
