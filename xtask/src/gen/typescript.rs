//! The npm package's copy of the floor's tables, spelled as prettier spells it.

use super::front_ends::{camel_case, read, Pair, SOURCES};
use super::mark;
use crate::checkout::{Checkout, Outcome};

/// `typescript/src/tables.gen.ts`.
pub fn tables(checkout: &Checkout) -> Outcome<String> {
    let tables = read(checkout)?;
    let mut out = format!("// {}\n", mark(SOURCES));
    let lines: Vec<String> = tables.git_config.split_inclusive('\n').map(string).collect();
    let constants = [
        ("IDENTITY_NAME", "Who commits in throwaway repositories.", format!("{:?}", tables.identity.0)),
        ("IDENTITY_EMAIL", "An address that can never be somebody's.", format!("{:?}", tables.identity.1)),
        (
            "DEFAULT_SANDBOX_ENV",
            "The variable that the sandbox runner sets to `1`.",
            format!("{:?}", tables.sandbox_env),
        ),
        ("DEFAULT_RUNNER_COMMAND", "What a refused run is pointed to.", format!("{:?}", tables.runner_command)),
    ];
    for (name, doc, value) in constants {
        out.push_str(&format!("\n/** {doc} */\nexport const {name} = {value};\n"));
    }
    out.push_str("\n/** The text of git's throwaway configuration. */\nexport const GIT_CONFIG = [\n");
    lines.iter().for_each(|line| out.push_str(&format!("  {line},\n")));
    out.push_str("].join(\"\");\n");
    let doc = "Names that are taken away always; upper case, compared without case.";
    strings(&mut out, "CREDENTIAL_VARS", doc, &tables.credentials);
    let doc = "Names that are taken away unless kept; `*` is any run of characters.";
    strings(&mut out, "CREDENTIAL_PATTERNS", doc, &tables.patterns);
    strings(&mut out, "GIT_REMOVED", "What is taken away from git; `*` is any run of characters.", &tables.git_removed);
    strings(&mut out, "GIT_CONFIG_PATHS", "Variables that name git's configuration file.", &tables.git_config_paths);
    pins(&mut out, "GIT_PINS", "The identity, and no questions.", &tables.git_pins);
    pins(&mut out, "TRANSPORT_PINS", "What closes git's transports.", &tables.transport_pins);
    out.push_str("\n/** The closed set of toolchain caches that may stay where they are while HOME moves: the variable, and where the\n");
    out.push_str(" * tool looks without it. `{home}` is the real home, `{gopath}` the GOPATH in force. */\n");
    out.push_str("export const KNOWN_VARS = {\n");
    for row in &tables.preserved {
        let (name, env, default) = (camel_case(&row.name), &row.variable, &row.default);
        out.push_str(&format!("  /** {} */\n  {name}: {{ env: {env:?}, default: {default:?} }},\n", row.doc));
    }
    out.push_str("} as const;\n");
    Ok(out)
}

fn strings(out: &mut String, name: &str, doc: &str, items: &[String]) {
    list(out, name, doc, "string", items.iter().map(|item| format!("{item:?}")));
}

fn pins(out: &mut String, name: &str, doc: &str, pins: &[Pair]) {
    let items = pins.iter().map(|(name, value)| format!("[{name:?}, {value:?}]"));
    list(out, name, doc, "(readonly [string, string])", items);
}

/// A string literal: with the quotes that need fewer escapes.
fn string(text: &str) -> String {
    let literal = format!("{text:?}");
    if !text.contains('"') || text.contains('\'') {
        return literal;
    }
    format!("'{}'", literal[1..literal.len() - 1].replace("\\\"", "\""))
}

/// A list, one item a line: a formatter would join a short one, so it is told not to.
fn list(out: &mut String, name: &str, doc: &str, kind: &str, items: impl Iterator<Item = String>) {
    out.push_str(&format!("\n/** {doc} */\n// prettier-ignore\nexport const {name}: readonly {kind}[] = [\n"));
    for item in items {
        out.push_str(&format!("  {item},\n"));
    }
    out.push_str("];\n");
}
