//! Words as the shell would pass them on: variables filled in, fields split.

use crate::process::UNKNOWN;
use crate::shell::token::Piece;
use std::collections::BTreeMap;

/// What words are expanded with.
pub struct Scope<'shell> {
    pub variables: &'shell BTreeMap<String, String>,
    /// `$0` and what follows.
    pub arguments: &'shell [String],
}

impl Scope<'_> {
    fn value(&self, name: &str) -> String {
        match name {
            "#" => self.arguments.len().saturating_sub(1).to_string(),
            "?" | "$" | "!" | "-" => UNKNOWN.to_string(),
            digit if digit.chars().all(|letter| letter.is_ascii_digit()) => {
                let number: usize = digit.parse().unwrap_or(usize::MAX);
                self.arguments.get(number).cloned().unwrap_or_default()
            }
            name => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    fn rest(&self) -> &[String] {
        self.arguments.get(1..).unwrap_or(&[])
    }
}

/// The fields that a word becomes: one as a rule, none for an empty expansion, several for a split one.
pub fn expand(pieces: &[Piece], scope: &Scope<'_>) -> Vec<String> {
    let mut fields = Fields { done: Vec::new(), open: None };
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text { text, is_quoted: false } if at == 0 && (text == "~" || text.starts_with("~/")) => {
                let home = scope.variables.get("HOME").map_or("~", String::as_str);
                fields.push(&format!("{home}{}", &text[1..]));
            }
            Piece::Text { text, .. } => fields.push(text),
            Piece::Script { .. } | Piece::Unknown => fields.push(&UNKNOWN.to_string()),
            Piece::Variable { name, is_quoted: true, .. } if name == "*" => fields.push(&scope.rest().join(" ")),
            Piece::Variable { name, is_quoted, .. } if name == "@" || name == "*" => {
                for (at, argument) in scope.rest().iter().enumerate() {
                    if at > 0 {
                        fields.end();
                    }
                    if *is_quoted {
                        fields.push(argument);
                    } else {
                        fields.push_split(argument);
                    }
                }
            }
            Piece::Variable { name, default, is_quoted } => {
                let value = scope.value(name);
                let value = if value.is_empty() { default.clone().unwrap_or_default() } else { value };
                if *is_quoted {
                    fields.push(&value);
                } else {
                    fields.push_split(&value);
                }
            }
        }
    }
    fields.end();
    fields.done
}

/// A word that stays one, as the right side of an assignment.
pub fn expand_whole(pieces: &[Piece], scope: &Scope<'_>) -> String {
    expand(pieces, scope).join(" ")
}

struct Fields {
    done: Vec<String>,
    open: Option<String>,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.open.get_or_insert_with(String::new).push_str(text);
    }

    fn push_split(&mut self, value: &str) {
        if value.starts_with(char::is_whitespace) {
            self.end();
        }
        for (at, part) in value.split_whitespace().enumerate() {
            if at > 0 {
                self.end();
            }
            self.push(part);
        }
        if value.ends_with(char::is_whitespace) && !value.trim().is_empty() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}
