//! Compares the crates' dependencies with the layer table in `ARCHITECTURE.md`: a crate uses only its own level or lower ones.
//!
//! The table is any Markdown table whose first cell is a level (`L0`, `L1`, …; an empty cell repeats the one above) and whose
//! second cell names crates, without their prefix, in backticks. Crates that do not exist yet may stand in it; a crate that
//! does exist must. Test dependencies are free.

use crate::checkout::{Checkout, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;

const PAGE: &str = "ARCHITECTURE.md";
const PREFIX: &str = "hermetic-";
/// Crates that are tools for this workspace or examples, and no part of the product.
const TOOLS: [&str; 2] = ["notes-example", "xtask"];

type Levels = BTreeMap<String, u32>;

pub fn run(checkout: &Checkout) -> Outcome {
    let levels = levels(&checkout.read(PAGE)?)?;
    let metadata = checkout.output("cargo", &["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("layers: cargo metadata: {error}"))?;
    let problems = compare(&levels, &metadata);
    if problems.is_empty() {
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn levels(page: &str) -> Outcome<Levels> {
    let mut levels = Levels::new();
    let mut current = None;
    for line in page.lines() {
        let Some(row) = line.trim().strip_prefix('|') else {
            current = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [first, second, ..] = cells[..] else { continue };
        current = if first.is_empty() { current } else { level_of(first) };
        let Some(level) = current else { continue };
        for name in second.split('`').skip(1).step_by(2) {
            if levels.insert(name.to_owned(), level).is_some() {
                return Err(format!("{PAGE}: the layer table names `{name}` twice"));
            }
        }
    }
    if levels.is_empty() {
        return Err(format!("{PAGE}: has no layer table; write rows such as | L0 | `model` | what it does |"));
    }
    Ok(levels)
}

fn level_of(cell: &str) -> Option<u32> {
    cell.trim_matches(['*', '`']).strip_prefix('L')?.parse().ok()
}

fn compare(levels: &Levels, metadata: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let empty = Vec::new();
    for package in metadata["packages"].as_array().unwrap_or(&empty) {
        let name = short(&package["name"]);
        if TOOLS.contains(&name) {
            continue;
        }
        let Some(level) = levels.get(name) else {
            problems.push(format!("{PAGE}: the layer table lacks `{name}`; add it to its level"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap_or(&empty) {
            let is_ours = dependency["path"].is_string();
            if !is_ours || dependency["kind"] == "dev" {
                continue;
            }
            let used = short(&dependency["name"]);
            match levels.get(used) {
                Some(lower) if lower <= level => {}
                Some(higher) => problems.push(format!(
                    "{name} (L{level}) uses {used} (L{higher}): a crate uses only its own level or lower ones; move the \
                     code down or the dependency out"
                )),
                None => problems.push(format!("{name} (L{level}) uses {used}, which is in no layer")),
            }
        }
    }
    problems
}

fn short(name: &Value) -> &str {
    let name = name.as_str().unwrap_or("");
    name.strip_prefix(PREFIX).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PAGE_TEXT: &str = "\
# Page

| level | crates | what |
|---|---|---|
| L0 | `model`, `policy` | pure |
|    | `engine` | pure |
| **L1** | `sys` | machine |

| other | `table` |
|---|---|
";

    fn package(name: &str, dependencies: Value) -> Value {
        json!({"packages": [{"name": format!("hermetic-{name}"), "dependencies": dependencies}]})
    }

    #[test]
    fn the_crates_keep_to_their_layers() {
        run(&Checkout::find().unwrap()).unwrap();
    }

    #[test]
    fn reads_the_table_and_no_other() {
        let levels = levels(PAGE_TEXT).unwrap();
        let expected = [("model", 0), ("policy", 0), ("engine", 0), ("sys", 1)];
        assert_eq!(levels, expected.map(|(name, level)| (name.to_owned(), level)).into());
        assert!(super::levels("nothing").unwrap_err().contains("has no layer table"));
    }

    #[test]
    fn finds_what_points_upwards() {
        let levels = levels(PAGE_TEXT).unwrap();
        let up = json!([{"name": "hermetic-sys", "path": "/x", "kind": null}]);
        assert!(compare(&levels, &package("engine", up))[0].contains("engine (L0) uses sys (L1)"));
        let test_only = json!([{"name": "hermetic-sys", "path": "/x", "kind": "dev"}, {"name": "libc", "kind": null}]);
        assert!(compare(&levels, &package("engine", test_only)).is_empty());
        assert!(compare(&levels, &package("pg", json!([])))[0].contains("lacks `pg`"));
    }
}
