//! The Go module's copy of the floor's tables, spelled as gofmt spells it.

use super::front_ends::{pascal_case, read, Pair, Tables, SOURCES};
use super::mark;
use crate::checkout::{Checkout, Outcome};

const TYPES: &str = "
// Cache is a toolchain cache that may stay where it is while HOME moves.
type Cache struct {
\t// Name is the constant of package hygiene.
\tName string
\t// Env is the variable that the tool reads.
\tEnv string
\t// Default is where the tool looks without it: below {home}, the real home, or {gopath}, the GOPATH in force.
\tDefault string
}

// Pin is a variable and the value that it gets.
type Pin struct {
\tName, Value string
}
";

/// `go/internal/tables/tables.go`.
pub fn tables(checkout: &Checkout) -> Outcome<String> {
    let tables = read(checkout)?;
    let mut out = format!("// {}\n\n", mark(SOURCES));
    out.push_str(
        "// Package tables holds what the floor takes, keeps and pins, as the specification of the project has it.\n",
    );
    out.push_str("package tables\n");
    out.push_str(TYPES);
    constants(&mut out, &tables);
    strings(&mut out, "Credentials", "are taken away always; upper case, compared without case.", &tables.credentials);
    strings(
        &mut out,
        "CredentialPatterns",
        "are taken away unless kept; * is any run of characters.",
        &tables.patterns,
    );
    strings(&mut out, "GitRemoved", "is taken away from git; * is any run of characters.", &tables.git_removed);
    strings(&mut out, "GitConfigPaths", "name git's configuration file.", &tables.git_config_paths);
    pins(&mut out, "GitPins", "are the identity, and no questions.", &tables.git_pins);
    pins(&mut out, "TransportPins", "close git's transports.", &tables.transport_pins);
    let caches = tables.preserved.iter().map(|row| {
        let (name, env, default) = (pascal_case(&row.name), &row.variable, &row.default);
        format!("{{Name: {name:?}, Env: {env:?}, Default: {default:?}}}")
    });
    list(
        &mut out,
        "Caches",
        "is the closed set of caches, in the order of the constants of package hygiene.",
        "Cache",
        caches,
    );
    Ok(out)
}

/// `go/hygiene/known.go`.
pub fn known(checkout: &Checkout) -> Outcome<String> {
    let tables = read(checkout)?;
    let mut out = format!("// {}\n\npackage hygiene\n\n", mark("spec/preserve.toml"));
    out.push_str(
        "// The caches that Preserve accepts. There are no others: a credential cannot get in by a typo.\nconst (\n",
    );
    for (at, row) in tables.preserved.iter().enumerate() {
        let name = pascal_case(&row.name);
        let value = if at == 0 { " KnownVar = iota" } else { "" };
        let doc = format!("{name} is {}: {}", row.variable, row.doc);
        out.push_str(&format!("\t// {doc}\n\t{name}{value}\n"));
    }
    out.push_str(")\n");
    Ok(out)
}

fn constants(out: &mut String, tables: &Tables) {
    let Tables { identity, sandbox_env, runner_command, threshold, .. } = tables;
    let rows = [
        ("IdentityName", "commits in throwaway repositories.", format!("{:?}", identity.0)),
        ("IdentityEmail", "can never be somebody's address.", format!("{:?}", identity.1)),
        ("SandboxEnv", "is the variable that the sandbox runner sets to 1.", format!("{sandbox_env:?}")),
        ("RunnerCommand", "is what a refused bare run is pointed to.", format!("{runner_command:?}")),
        ("Threshold", "is how many tests may run outside of the sandbox runner.", threshold.clone()),
    ];
    for (name, doc, value) in rows {
        out.push_str(&format!("\n// {name} {doc}\nconst {name} = {value}\n"));
    }
    let lines: Vec<String> = tables.git_config.split_inclusive('\n').map(|line| format!("{line:?}")).collect();
    out.push_str("\n// GitConfig is the text of git's throwaway configuration.\nconst GitConfig = \"\" +\n\t");
    out.push_str(&lines.join(" +\n\t"));
    out.push('\n');
}

fn strings(out: &mut String, name: &str, doc: &str, items: &[String]) {
    list(out, name, doc, "string", items.iter().map(|item| format!("{item:?}")));
}

fn pins(out: &mut String, name: &str, doc: &str, pins: &[Pair]) {
    list(out, name, doc, "Pin", pins.iter().map(|(name, value)| format!("{{Name: {name:?}, Value: {value:?}}}")));
}

fn list(out: &mut String, name: &str, doc: &str, kind: &str, items: impl Iterator<Item = String>) {
    out.push_str(&format!("\n// {name} {doc}\nvar {name} = []{kind}{{\n"));
    for item in items {
        out.push_str(&format!("\t{item},\n"));
    }
    out.push_str("}\n");
}
