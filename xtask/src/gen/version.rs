//! `VERSION` is the one place that says which release this is; every manifest has to agree. Manifests are edited by people,
//! so this compares and does not write.

use crate::checkout::{Checkout, Outcome};
use toml::{Table, Value};

/// Manifests and where in them the version stands.
const MANIFESTS: [(&str, &[&str]); 4] = [
    ("Cargo.toml", &["workspace", "package", "version"]),
    ("pyproject.toml", &["project", "version"]),
    ("python/stricttest/pyproject.toml", &["project", "version"]),
    ("typescript/package.json", &["version"]),
];

pub fn check(checkout: &Checkout) -> Outcome {
    let version = checkout.read("VERSION")?;
    let version = version.trim();
    for (path, keys) in MANIFESTS {
        let manifest = read(checkout, path)?;
        match text_at(&manifest, keys) {
            // A manifest that takes its version from another one has none to go stale.
            None => {}
            Some(found) if found == version => {}
            Some(found) => {
                return Err(format!(
                    "{path}: {} is {found:?}, but VERSION says {version:?}; write the same into both",
                    keys.join(".")
                ));
            }
        }
    }
    Ok(())
}

fn read(checkout: &Checkout, path: &str) -> Outcome<Table> {
    if path.ends_with(".toml") {
        return super::table(checkout, path);
    }
    serde_json::from_str(&checkout.read(path)?).map_err(|error| format!("{path}: {error}"))
}

fn text_at<'table>(table: &'table Table, keys: &[&str]) -> Option<&'table str> {
    let (last, folders) = keys.split_last()?;
    let mut table = table;
    for key in folders {
        table = table.get(*key)?.as_table()?;
    }
    table.get(*last).and_then(Value::as_str)
}
