//! The list behind the attribute's name: `name = value, …`.

use crate::error::Error;
use proc_macro::{Ident, Span, TokenStream, TokenTree};

/// One option as it is written.
pub struct Argument {
    pub name: Ident,
    /// Everything up to the next comma.
    pub value: Vec<TokenTree>,
}

impl Argument {
    /// Where the value stands.
    pub fn span(&self) -> Span {
        self.value.first().map_or_else(|| self.name.span(), TokenTree::span)
    }

    pub fn value_text(&self) -> String {
        TokenStream::from_iter(self.value.iter().cloned()).to_string()
    }
}

/// Splits the list.
pub fn parse(arguments: TokenStream) -> Result<Vec<Argument>, Error> {
    let mut found = Vec::new();
    let mut tokens = arguments.into_iter();
    while let Some(first) = tokens.next() {
        let TokenTree::Ident(name) = first else {
            let message = format!("options are given by name: write seed = 42 or the like, not {first}");
            return Err(Error::new(first.span(), message));
        };
        match tokens.next() {
            Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {}
            _ => return Err(Error::new(name.span(), format!("the option {name} has no value: write {name} = …"))),
        }
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
        let value: Vec<TokenTree> = tokens.by_ref().take_while(|token| !is_comma(token)).collect();
        if value.is_empty() {
            return Err(Error::new(name.span(), format!("the option {name} has no value: write {name} = …")));
        }
        found.push(Argument { name, value });
    }
    Ok(found)
}
