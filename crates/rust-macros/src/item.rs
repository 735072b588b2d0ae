//! A function, taken apart as far as a test needs it.

use crate::error::Error;
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// `#[…]` in front of an item.
pub struct Attribute {
    /// The sign and the brackets.
    pub tokens: [TokenTree; 2],
    /// The path as text, without spaces: `tokio::test`.
    pub path: String,
}

/// A function without arguments.
pub struct Function {
    pub attributes: Vec<Attribute>,
    pub visibility: TokenStream,
    /// What stands between the visibility and `fn`.
    pub qualifiers: TokenStream,
    pub is_async: bool,
    pub name: Ident,
    /// Behind the arrow; empty where there is none.
    pub returns: TokenStream,
    pub body: Group,
}

impl Attribute {
    /// `#[test]`, which the compiler knows.
    pub fn is_built_in_test(&self) -> bool {
        matches!(self.path.trim_start_matches("::"), "test" | "core::prelude::v1::test" | "std::prelude::v1::test")
    }

    /// Makes a test of the function that it stands before, in its own way: `#[tokio::test]`.
    pub fn is_other_test(&self) -> bool {
        !self.is_built_in_test() && self.path.rsplit("::").next() == Some("test")
    }
}

/// Reads a function.
pub fn parse(item: TokenStream) -> Result<Function, Error> {
    let mut tokens = item.into_iter().peekable();
    let mut attributes = Vec::new();
    while let Some(TokenTree::Punct(sign)) = tokens.next_if(|token| is_sign(token, '#')) {
        let Some(TokenTree::Group(brackets)) = tokens.next() else { return Err(no_function(sign.span())) };
        attributes.push(Attribute { path: path_of(&brackets), tokens: [sign.into(), brackets.into()] });
    }
    let mut visibility = TokenStream::new();
    if let Some(word) = tokens.next_if(|token| is_word(token, "pub")) {
        visibility.extend([word]);
        visibility.extend(tokens.next_if(|token| matches!(token, TokenTree::Group(_))));
    }
    let mut qualifiers = TokenStream::new();
    let mut is_async = false;
    loop {
        match tokens.next() {
            Some(word) if is_word(&word, "fn") => break,
            Some(TokenTree::Ident(word)) if QUALIFIERS.contains(&word.to_string().as_str()) => {
                is_async |= word.to_string() == "async";
                qualifiers.extend([TokenTree::from(word)]);
            }
            // The name behind `extern`.
            Some(TokenTree::Literal(name)) => qualifiers.extend([TokenTree::from(name)]),
            other => return Err(no_function(other.map_or_else(Span::call_site, |token| token.span()))),
        }
    }
    let Some(TokenTree::Ident(name)) = tokens.next() else { return Err(no_function(Span::call_site())) };
    match tokens.next() {
        Some(TokenTree::Group(arguments)) if arguments.delimiter() == Delimiter::Parenthesis => {
            if !arguments.stream().is_empty() {
                return Err(Error::new(arguments.span(), "a test takes no arguments: nobody would pass them"));
            }
        }
        other => {
            let span = other.map_or_else(|| name.span(), |token| token.span());
            return Err(Error::new(span, "a test is not generic: nobody would choose the types"));
        }
    }
    let mut rest: Vec<TokenTree> = tokens.collect();
    let Some(TokenTree::Group(body)) = rest.pop() else { return Err(no_function(name.span())) };
    // The arrow is two signs.
    let returns = rest.into_iter().skip(2).collect();
    Ok(Function { attributes, visibility, qualifiers, is_async, name, returns, body })
}

const QUALIFIERS: [&str; 5] = ["async", "const", "extern", "safe", "unsafe"];

fn no_function(span: Span) -> Error {
    Error::new(span, "#[hermetic::test] stands before a function")
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

/// The path of an attribute: words and colons, up to whatever comes behind.
fn path_of(brackets: &Group) -> String {
    let is_part = |token: &TokenTree| matches!(token, TokenTree::Ident(_)) || is_sign(token, ':');
    brackets.stream().into_iter().take_while(is_part).map(|token| token.to_string()).collect()
}
