//! From a function to a test.

use crate::arguments;
use crate::error::Error;
use crate::item::{self, Attribute, Function};
use crate::option;
use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

/// Where the attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// It makes the test, or leaves that to one that follows.
    First,
    /// Another attribute has made the test.
    Inside,
}

pub fn expand(arguments: TokenStream, item: TokenStream, position: Position) -> TokenStream {
    match try_expand(arguments, item.clone(), position) {
        Ok(tokens) => tokens,
        Err(error) => {
            // The function stays, so that nothing else is reported as missing.
            let mut tokens = error.to_tokens();
            tokens.extend(item);
            tokens
        }
    }
}

fn try_expand(arguments: TokenStream, item: TokenStream, position: Position) -> Result<TokenStream, Error> {
    let mut function = item::parse(item)?;
    let calls = option::calls(&arguments::parse(arguments.clone())?)?;
    let other = function.attributes.iter().position(Attribute::is_other_test);
    if let (Position::First, Some(at)) = (position, other) {
        return Ok(behind(function.attributes.remove(at), arguments, function));
    }
    Ok(test(function, &calls, position))
}

/// The run time's attribute goes first and makes a plain function of an `async fn`; then it is our turn again.
fn behind(runtime: Attribute, arguments: TokenStream, function: Function) -> TokenStream {
    let mut tokens = TokenStream::from_iter(runtime.tokens);
    tokens.extend(source("#"));
    let mut own = source("::hermetic::__inside");
    own.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, arguments))]);
    tokens.extend([TokenTree::from(Group::new(Delimiter::Bracket, own))]);
    let Function { attributes, visibility, qualifiers, name, returns, body, .. } = function;
    tokens.extend(attributes.into_iter().flat_map(|attribute| attribute.tokens));
    tokens.extend(visibility);
    tokens.extend(signature(qualifiers, name, returns));
    tokens.extend([TokenTree::from(body)]);
    tokens
}

fn test(function: Function, calls: &str, position: Position) -> TokenStream {
    let Function { attributes, visibility, qualifiers, is_async, name, returns, body } = function;
    let is_made = position == Position::Inside || attributes.iter().any(Attribute::is_built_in_test);
    let expects_panic = attributes.iter().any(|attribute| attribute.path == "should_panic");
    let is_silent = returns.is_empty() || returns.to_string() == "()";
    let mut tokens = TokenStream::from_iter(attributes.into_iter().flat_map(|attribute| attribute.tokens));
    if !is_made {
        tokens.extend(source("#[::core::prelude::v1::test]"));
    }
    tokens.extend(visibility);
    let code = if is_silent { TokenStream::new() } else { source("::std::process::ExitCode") };
    tokens.extend(signature(TokenStream::new(), name.clone(), code));
    // The function itself, under its own name, so that it may still call itself.
    let mut outer = signature(qualifiers, name.clone(), returns);
    outer.extend([TokenTree::from(body)]);
    outer.extend(call(&name, calls, expects_panic, is_async, is_silent));
    tokens.extend([TokenTree::from(Group::new(Delimiter::Brace, outer))]);
    tokens
}

/// `qualifiers fn name() -> returns`.
fn signature(qualifiers: TokenStream, name: Ident, returns: TokenStream) -> TokenStream {
    let mut tokens = qualifiers;
    tokens.extend(source("fn"));
    tokens.extend([TokenTree::from(name)]);
    tokens.extend(source("()"));
    if !returns.is_empty() {
        tokens.extend(source("->"));
        tokens.extend(returns);
    }
    tokens
}

/// The call that runs the function in a sandbox.
fn call(name: &Ident, calls: &str, expects_panic: bool, is_async: bool, is_silent: bool) -> TokenStream {
    let name_text = Literal::string(name.to_string().trim_start_matches("r#"));
    let body = if is_async { format!("|| ::hermetic::__private::block_on({name}())") } else { name.to_string() };
    let end = if is_silent { ";" } else { "" };
    source(&format!(
        "::hermetic::__private::run(
            &::hermetic::__private::Case {{
                module: ::core::module_path!(),
                name: {name_text},
                package: ::core::option_env!(\"CARGO_PKG_NAME\"),
                folder: ::core::option_env!(\"CARGO_MANIFEST_DIR\"),
                expects_panic: {expects_panic},
            }},
            |builder| builder{calls},
            {body},
        ){end}"
    ))
}

/// Source text as tokens; it is our own, so it has a form.
fn source(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|_| Error::new(Span::call_site(), "the test cannot be put together").to_tokens())
}
