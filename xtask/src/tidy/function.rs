//! How long Rust functions are. Reads just enough of the language for that: comments, strings and character literals are
//! blanked out, then braces are counted.

use super::Finding;

const FUNCTION_LINES_MAX: usize = 70;

pub fn long_functions(text: &str) -> Vec<Finding> {
    let code = without_text(text);
    let starts = code.match_indices("fn ").filter(|(at, _)| is_function(&code, *at)).map(|(at, _)| at);
    starts.filter_map(|start| too_long(&code, start)).collect()
}

fn too_long(code: &str, start: usize) -> Option<Finding> {
    let end = end_of_body(&code[start..])?;
    let lines = code[start..start + end].matches('\n').count() + 1;
    if lines <= FUNCTION_LINES_MAX {
        return None;
    }
    let name: String =
        code[start + 3..].chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let message =
        format!("function {name} has {lines} lines, more than {FUNCTION_LINES_MAX}: split it by what it decides");
    Some(Finding { line: code[..start].matches('\n').count() + 1, message })
}

/// `fn` as a keyword before a name; not the end of another word, and not a function type.
fn is_function(code: &str, at: usize) -> bool {
    let before = code[..at].chars().next_back();
    let after = code[at + 3..].chars().next();
    !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
        && after.is_some_and(|letter| letter.is_alphabetic() || letter == '_')
}

/// Where the body that starts at the first brace ends. None for a signature without a body.
fn end_of_body(code: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut brackets = 0usize;
    for (at, letter) in code.char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if depth == 0 && brackets == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && brackets == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The source with comments and the insides of literals replaced by spaces, line ends kept.
pub fn without_text(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let text_len = text_len(rest, out.chars().next_back());
        let (text, behind) = rest.split_at(text_len.unwrap_or(letter.len_utf8()));
        match text_len {
            Some(_) => out.extend(text.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' })),
            None => out.push_str(text),
        }
        rest = behind;
    }
    out
}

/// The length of the comment or literal at the start of `rest`, if there is one.
fn text_len(rest: &str, before: Option<char>) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_len(rest));
    }
    if rest.starts_with('"') {
        return Some(quoted_len(rest, '"').unwrap_or(rest.len()));
    }
    if rest.starts_with('\'') {
        return char_len(rest);
    }
    let is_word_part = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    if is_word_part {
        return None;
    }
    raw_string_len(rest)
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a literal in which a backslash takes the next letter's meaning.
fn quoted_len(rest: &str, quote: char) -> Option<usize> {
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            letter if letter == quote => return Some(at + letter.len_utf8()),
            _ => {}
        }
    }
    None
}

/// A character literal; a lifetime is none.
fn char_len(rest: &str) -> Option<usize> {
    let mut letters = rest.chars().skip(1);
    let (first, second) = (letters.next()?, letters.next()?);
    if first == '\\' || second == '\'' {
        return quoted_len(rest, '\'');
    }
    None
}

/// `r"…"`, `r#"…"#`, and the same after `b` or `c`.
fn raw_string_len(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let start = prefix.len() + hashes;
    if !rest[start..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(rest[start + 1..].find(&close).map_or(rest.len(), |at| start + 1 + at + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_blanked_and_code_is_kept() {
        let source = "a /* { /* } */ */ 'x' '\\'' 'b str \"}\\\"\" r#\"\"}\"# br\"{\" c // }\n{\n";
        let code = without_text(source);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "'b", "str", "c", "{"]);
        assert_eq!(code.matches('\n').count(), 2);
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let body =
            |lines: usize| format!("x\nfn long<const N: usize>(a: [u8; 3]) {{\n{}}}\n", "    a;\n".repeat(lines));
        assert!(long_functions(&body(FUNCTION_LINES_MAX - 2)).is_empty());
        let found = long_functions(&body(FUNCTION_LINES_MAX - 1));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].message.starts_with("function long has 71 lines"));
    }

    #[test]
    fn signatures_and_function_types_have_no_length() {
        let source = format!("trait T {{\nfn f(&self);\n}}\ntype F = fn(u8);\nlet my_fn = 1;\n{}", "\n".repeat(100));
        assert!(long_functions(&source).is_empty());
    }
}
