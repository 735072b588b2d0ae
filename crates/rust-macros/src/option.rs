//! Options: what is accepted, and the call of the builder that each becomes.
//!
//! A value that is written out is checked here, while the program is compiled. An expression is passed on as it is; the
//! builder's types and the entry check it.

use crate::arguments::Argument;
use crate::error::Error;
use crate::literal::{self, Value};
use crate::table::OPTIONS;
use hermetic_model::instant;
use hermetic_policy::Policy;
use proc_macro::{Delimiter, TokenTree};

/// What an option's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Seed,
    Instant,
    Seconds,
    Count,
    Switch,
    Choice(&'static [&'static str]),
    Network,
}

/// One option.
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    /// How an error text ends: "accepted is …".
    pub accepts: &'static str,
}

const TICK_SECONDS_MAX: f64 = 86_400.0;

/// The calls of the builder for these options, as source text: `.seed((42) as i128).now("…")`.
pub fn calls(arguments: &[Argument]) -> Result<String, Error> {
    let mut calls = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        let name = argument.name.to_string();
        let Some(row) = OPTIONS.iter().find(|row| row.name == name) else { return Err(unknown(argument)) };
        if arguments[..at].iter().any(|earlier| earlier.name.to_string() == name) {
            return Err(Error::new(argument.name.span(), format!("the option {name} is there twice")));
        }
        let value = value(row, argument)?;
        calls.push_str(&format!(".{name}({value})"));
    }
    Ok(calls)
}

fn unknown(argument: &Argument) -> Error {
    let names: Vec<&str> = OPTIONS.iter().map(|row| row.name).collect();
    let message = format!("unknown option {}; accepted are {}", argument.name, names.join(", "));
    Error::new(argument.name.span(), message)
}

/// The argument of the builder's method.
fn value(row: &Row, argument: &Argument) -> Result<String, Error> {
    let text = argument.value_text();
    let refused = |problem: &str| {
        let message = format!("{} = {text}{problem}; accepted is {}", row.name, row.accepts);
        Err(Error::new(argument.span(), message))
    };
    match (row.kind, written(argument)) {
        (Kind::Switch, Written::Word(word)) if word == "true" || word == "false" => Ok(text),
        (Kind::Network, Written::List(entries)) => network(row, argument, &entries),
        (_, Written::Expression | Written::Word(_)) => Ok(match row.kind {
            Kind::Seed => format!("({text}) as i128"),
            _ => text,
        }),
        (Kind::Seed, Written::Literal(Value::Integer(Some(_)))) => Ok(format!("({text}) as i128")),
        (Kind::Instant, Written::Literal(Value::Text(moment))) => match instant::parse(&moment) {
            Ok(_) => Ok(text),
            Err(error) => Err(Error::new(argument.span(), format!("{} = {text} {error}", row.name))),
        },
        (Kind::Instant, Written::Literal(Value::Integer(Some(0..=9_223_372_036)))) => Ok(format!("({text}) as i64")),
        (Kind::Instant, Written::Literal(Value::Float(seconds))) if (0.0..9.2e9).contains(&seconds) => Ok(text),
        (Kind::Seconds, Written::Literal(Value::Float(seconds))) if (0.0..=TICK_SECONDS_MAX).contains(&seconds) => {
            Ok(text)
        }
        (Kind::Seconds, Written::Literal(Value::Integer(Some(0..=86_400)))) => Ok(format!("({text}) as f64")),
        (Kind::Count, Written::Literal(Value::Integer(Some(count)))) if u64::try_from(count).is_ok() => Ok(text),
        (Kind::Choice(choices), Written::Literal(Value::Text(chosen))) if choices.contains(&chosen.as_str()) => {
            Ok(format!("::hermetic::option::{}::{}", pascal_case(row.name), pascal_case(&chosen)))
        }
        (Kind::Network, Written::Literal(Value::Text(word))) => match word.as_str() {
            "block" => Ok("::hermetic::Network::Block".to_owned()),
            "off" | "allow" => Ok("::hermetic::Network::Off".to_owned()),
            _ => refused(&format!(" is no such word (for one entry write [{text}])")),
        },
        _ => refused(" does not fit"),
    }
}

/// How a value is written.
enum Written {
    Literal(Value),
    Word(String),
    List(Vec<TokenTree>),
    Expression,
}

fn written(argument: &Argument) -> Written {
    match argument.value.as_slice() {
        [TokenTree::Literal(literal)] => Written::Literal(literal::read(&literal.to_string())),
        [TokenTree::Punct(sign), TokenTree::Literal(literal)] if sign.as_char() == '-' => {
            Written::Literal(literal::read(&format!("-{literal}")))
        }
        [TokenTree::Ident(word)] => Written::Word(word.to_string()),
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => {
            Written::List(group.stream().into_iter().collect())
        }
        _ => Written::Expression,
    }
}

/// A list of entries; those that are written out are checked.
fn network(row: &Row, argument: &Argument, tokens: &[TokenTree]) -> Result<String, Error> {
    for token in tokens {
        let TokenTree::Literal(spelled) = token else { continue };
        let Value::Text(entry) = literal::read(&spelled.to_string()) else {
            let message = format!("{} entry {spelled} is no text; accepted is {}", row.name, row.accepts);
            return Err(Error::new(token.span(), message));
        };
        if let Err(error) = Policy::new(true, true).add(&entry) {
            return Err(Error::new(token.span(), error.to_string()));
        }
    }
    if tokens.is_empty() {
        return Ok("::hermetic::Network::Block".to_owned());
    }
    Ok(argument.value_text())
}

/// `network_strict` as `NetworkStrict`.
fn pascal_case(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
