//! Errors that the compiler shows at the tokens that caused them.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// What is wrong, and where.
#[derive(Debug)]
pub struct Error {
    pub span: Span,
    pub message: String,
}

impl Error {
    pub fn new(span: Span, message: impl Into<String>) -> Error {
        Error { span, message: message.into() }
    }

    /// `::core::compile_error! { "message" }`, at the span.
    pub fn to_tokens(&self) -> TokenStream {
        let at = |mut token: TokenTree| {
            token.set_span(self.span);
            token
        };
        let punct = |sign, spacing| at(Punct::new(sign, spacing).into());
        let ident = |name| at(Ident::new(name, self.span).into());
        let colons = || [punct(':', Spacing::Joint), punct(':', Spacing::Alone)];
        let text = at(Literal::string(&self.message).into());
        let mut tokens = TokenStream::from_iter(colons());
        tokens.extend([ident("core")]);
        tokens.extend(colons());
        tokens.extend([ident("compile_error"), punct('!', Spacing::Alone)]);
        tokens.extend([at(Group::new(Delimiter::Brace, text.into()).into())]);
        tokens
    }
}
