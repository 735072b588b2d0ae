//! A script taken apart: words with their quotes and expansions, operators, here-documents dropped.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text {
        text: String,
        is_quoted: bool,
    },
    /// `$name`, `${name}` or `${name:-default}`.
    Variable {
        name: String,
        default: Option<String>,
        is_quoted: bool,
    },
    /// `$(…)` or backticks.
    Script {
        text: String,
    },
    /// Any other expansion.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(Vec<Piece>),
    /// `;` `&` `|` `&&` `||` `;;` `(` `)` or a line end, which is `\n`.
    Operator(&'static str),
    /// A redirection; the word behind it is its target.
    Redirect,
}

impl Token {
    /// The text of a word that is one unquoted run of letters.
    pub fn plain(&self) -> Option<&str> {
        match self {
            Token::Word(pieces) => match &pieces[..] {
                [Piece::Text { text, is_quoted: false }] => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The tokens of a script. A script that ends in the middle of something gives what could be read.
pub fn tokens(script: &str) -> Vec<Token> {
    let mut lexer = Lexer { letters: script.chars().collect(), at: 0, tokens: Vec::new(), documents: Vec::new() };
    while lexer.step() {}
    lexer.tokens
}

struct Lexer {
    letters: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    /// Delimiters of here-documents whose text begins at the next line.
    documents: Vec<String>,
}

/// Longest first.
const OPERATORS: [&str; 8] = ["&&", "||", ";;", ";", "|", "&", "(", ")"];

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn is_next(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, letter)| self.peek(ahead) == Some(letter))
    }

    /// Reads one token. False at the end.
    fn step(&mut self) -> bool {
        let Some(letter) = self.peek(0) else { return false };
        match letter {
            '\n' => {
                self.at += 1;
                self.tokens.push(Token::Operator("\n"));
                self.skip_documents();
            }
            '\\' if self.peek(1) == Some('\n') => self.at += 2,
            letter if letter.is_whitespace() => self.at += 1,
            '#' => {
                while self.peek(0).is_some_and(|letter| letter != '\n') {
                    self.at += 1;
                }
            }
            '<' | '>' => self.redirect(),
            '&' if self.peek(1) == Some('>') => {
                self.at += 1;
                self.redirect();
            }
            _ => match OPERATORS.iter().find(|operator| self.is_next(operator)) {
                Some(operator) => {
                    self.at += operator.len();
                    self.tokens.push(Token::Operator(operator));
                }
                None => self.word(),
            },
        }
        true
    }

    fn redirect(&mut self) {
        let start = self.at;
        while self.at - start < 3 && self.peek(0).is_some_and(|letter| "<>&|-".contains(letter)) {
            self.at += 1;
        }
        let sign: String = self.letters[start..self.at].iter().collect();
        if sign.starts_with("<<") && !sign.starts_with("<<<") {
            while matches!(self.peek(0), Some(' ' | '\t' | '-')) {
                self.at += 1;
            }
            let before = self.tokens.len();
            self.word();
            let word = self.tokens.drain(before..).next();
            self.documents.push(word.map_or(String::new(), |word| text_of(&word)));
            return;
        }
        // `2>&1` and `>&-` have their target attached; other targets are the next word.
        self.tokens.push(Token::Redirect);
    }

    fn skip_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.documents) {
            while self.at < self.letters.len() {
                let end = self.letters[self.at..].iter().position(|&letter| letter == '\n');
                let end = end.map_or(self.letters.len(), |len| self.at + len);
                let line: String = self.letters[self.at..end].iter().collect();
                self.at = (end + 1).min(self.letters.len());
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
            }
        }
    }

    fn word(&mut self) {
        let mut pieces: Vec<Piece> = Vec::new();
        let start = self.at;
        while let Some(letter) = self.peek(0) {
            match letter {
                letter if letter.is_whitespace() || ";&|()<>".contains(letter) => break,
                '\'' => {
                    self.at += 1;
                    let text = self.until('\'');
                    push_text(&mut pieces, &text, true);
                }
                '"' => self.double_quoted(&mut pieces),
                '\\' => {
                    if let Some(next) = self.peek(1).filter(|&next| next != '\n') {
                        push_text(&mut pieces, &next.to_string(), true);
                    }
                    self.at += 2;
                }
                '$' | '`' => {
                    let piece = self.expansion(false);
                    pieces.push(piece);
                }
                letter => {
                    self.at += 1;
                    push_text(&mut pieces, &letter.to_string(), false);
                }
            }
        }
        if self.at == start {
            // Nothing was read: a sign that begins no word. Never stand still.
            self.at += 1;
            return;
        }
        let token = Token::Word(pieces);
        // The number of a descriptor before a redirection is no word.
        let is_number = token.plain().is_some_and(|text| text.chars().all(|letter| letter.is_ascii_digit()));
        if !(is_number && matches!(self.peek(0), Some('<' | '>'))) {
            self.tokens.push(token);
        }
    }

    /// The text up to a closing letter, which is passed.
    fn until(&mut self, close: char) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(|letter| letter != close) {
            self.at += 1;
        }
        let text = self.letters[start..self.at].iter().collect();
        self.at += 1;
        text
    }

    fn double_quoted(&mut self, pieces: &mut Vec<Piece>) {
        self.at += 1;
        push_text(pieces, "", true);
        while let Some(letter) = self.peek(0) {
            match letter {
                '"' => break,
                '\\' => {
                    let next = self.peek(1);
                    match next {
                        Some('\n') => {}
                        Some(next) if "\"\\$`".contains(next) => push_text(pieces, &next.to_string(), true),
                        Some(next) => push_text(pieces, &format!("\\{next}"), true),
                        None => {}
                    }
                    self.at += 2;
                }
                '$' | '`' => {
                    let piece = self.expansion(true);
                    pieces.push(piece);
                }
                letter => {
                    self.at += 1;
                    push_text(pieces, &letter.to_string(), true);
                }
            }
        }
        self.at += 1;
    }

    fn expansion(&mut self, is_quoted: bool) -> Piece {
        if self.peek(0) == Some('`') {
            self.at += 1;
            return Piece::Script { text: self.until('`').replace("\\`", "`") };
        }
        self.at += 1;
        match self.peek(0) {
            Some('(') if self.peek(1) == Some('(') => {
                self.balanced();
                Piece::Unknown
            }
            Some('(') => Piece::Script { text: self.balanced() },
            Some('{') => {
                self.at += 1;
                let inner = self.until('}');
                braced(&inner, is_quoted)
            }
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                let start = self.at;
                while self.peek(0).is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                    self.at += 1;
                }
                let name = self.letters[start..self.at].iter().collect();
                Piece::Variable { name, default: None, is_quoted }
            }
            Some(letter) if letter.is_ascii_digit() || "@*#?$!-".contains(letter) => {
                self.at += 1;
                Piece::Variable { name: letter.to_string(), default: None, is_quoted }
            }
            _ => Piece::Text { text: "$".to_owned(), is_quoted },
        }
    }

    /// What stands between a bracket and its match, quotes respected.
    fn balanced(&mut self) -> String {
        let start = self.at + 1;
        let mut depth = 0_usize;
        let mut quote = None;
        while let Some(letter) = self.peek(0) {
            self.at += 1;
            match (quote, letter) {
                (Some(open), letter) if letter == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(letter),
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth == 0 {
                        return self.letters[start..self.at - 1].iter().collect();
                    }
                }
                _ => {}
            }
        }
        self.letters[start.min(self.letters.len())..].iter().collect()
    }
}

fn push_text(pieces: &mut Vec<Piece>, more: &str, quoted: bool) {
    match pieces.last_mut() {
        Some(Piece::Text { text, is_quoted }) if *is_quoted == quoted => text.push_str(more),
        _ => pieces.push(Piece::Text { text: more.to_owned(), is_quoted: quoted }),
    }
}

fn braced(inner: &str, is_quoted: bool) -> Piece {
    let end = inner.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let name = if name.is_empty() && matches!(inner, "@" | "*") { inner } else { name };
    let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'));
    match (rest, default) {
        ("" | "@" | "*", _) if !name.is_empty() => Piece::Variable { name: name.to_owned(), default: None, is_quoted },
        (_, Some(default)) if !default.contains(['$', '`', '\\', '"', '\'']) => {
            Piece::Variable { name: name.to_owned(), default: Some(default.to_owned()), is_quoted }
        }
        _ => Piece::Unknown,
    }
}

fn text_of(token: &Token) -> String {
    let Token::Word(pieces) = token else { return String::new() };
    let text = |piece: &Piece| match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Variable { name, .. } => format!("${name}"),
        _ => String::new(),
    };
    pieces.iter().map(text).collect()
}
