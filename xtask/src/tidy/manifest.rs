//! Each dependency from outside has its reason in a comment above it, in the manifest that names its version. Those of tests
//! do not reach a user and need none.

use super::Finding;

pub fn dependencies(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_dependency_table = false;
    let mut has_reason = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            is_dependency_table = line.ends_with("dependencies]") && line != "[dev-dependencies]";
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if line.is_empty() {
            has_reason = false;
        } else if is_dependency_table && !has_reason && !is_ours(line) {
            let name = line.split([' ', '=', '.']).next().unwrap_or(line);
            let message = format!("dependency {name} has no reason: say in a comment above it what it is for");
            findings.push(Finding { line: at + 1, message });
        }
    }
    findings
}

/// Our own crates, and what the workspace's manifest already gives a version to. Lines that go on inside brackets are none.
fn is_ours(line: &str) -> bool {
    line.starts_with("hermetic-")
        || line.starts_with("hermetic =")
        || line.contains("workspace = true")
        || line.starts_with([' ', ']', '}', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comment_serves_the_block_below_it() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nhermetic-abi.workspace = true\n# Reads tables.\n\
                        serde = \"1\"\ntoml = \"1\"\n\nlibc.workspace = true\nzstd = \"0\"\n\n\
                        [dev-dependencies]\nproptest = \"1\"\n";
        let lines: Vec<usize> = dependencies(manifest).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [11]);
    }
}
