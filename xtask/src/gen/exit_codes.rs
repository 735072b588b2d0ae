//! The exit codes of the command line: `spec/exit-codes.toml` to the page of them.

use super::{cell, check_sentence, mark, table};
use crate::checkout::{Checkout, Outcome};
use serde::Deserialize;
use std::fmt::Write;

const SOURCE: &str = "spec/exit-codes.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    exit_code: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    code: u8,
    name: String,
    command: String,
    doc: String,
}

fn read(checkout: &Checkout) -> Outcome<Vec<Row>> {
    let rows = table::<Table>(checkout, SOURCE)?.exit_code;
    for row in &rows {
        check_sentence(SOURCE, &row.name, &row.doc)?;
    }
    for pair in rows.windows(2) {
        if (&pair[0].command, pair[0].code) >= (&pair[1].command, pair[1].code) {
            return Err(format!(
                "{SOURCE}: {:?} must stand before {:?}: by command, then by code, each once",
                pair[1].name, pair[0].name
            ));
        }
    }
    Ok(rows)
}

pub fn docs(checkout: &Checkout) -> Outcome<String> {
    let rows = read(checkout)?;
    let mut out = format!("<!-- {} -->\n\n# Exit codes\n\n", mark(SOURCE));
    out.push_str("A code keeps its meaning for ever.\n\n| command | code | name | meaning |\n|---|---|---|---|\n");
    for row in rows {
        writeln!(out, "| `{}` | {} | {} | {} |", row.command, row.code, row.name, cell(&row.doc))
            .expect("a String takes all");
    }
    Ok(out)
}
