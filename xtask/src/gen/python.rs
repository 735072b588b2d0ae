//! Python literals, spelled as its formatter spells them.

/// A string literal.
pub fn string(text: &str) -> String {
    let quote = if text.contains('"') && !text.contains('\'') { '\'' } else { '"' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter if letter == quote => out.extend(['\\', quote]),
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// A tuple of literals.
pub fn tuple(items: &[String]) -> String {
    match items {
        [] => "()".to_owned(),
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A default or a choice: a literal as it stands, or a string.
pub fn value(text: &str) -> String {
    if is_literal(text) {
        text.to_owned()
    } else {
        string(text)
    }
}

/// Whether a text is a literal as it stands: a number, or one of the three constants.
pub fn is_literal(text: &str) -> bool {
    matches!(text, "None" | "True" | "False") || text.replace('_', "").parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_the_formatter_does() {
        assert_eq!(string("plain"), "\"plain\"");
        assert_eq!(string("say \"no\""), "'say \"no\"'");
        assert_eq!(string("it's \"no\"\\"), "\"it's \\\"no\\\"\\\\\"");
        assert_eq!(tuple(&[string("a")]), "(\"a\",)");
    }

    #[test]
    fn literals_are_told_from_words() {
        for text in ["None", "True", "1e-6", "1_000_000", "-3"] {
            assert!(is_literal(text), "{text}");
        }
        assert_eq!(["None", "block"].map(value), ["None", "\"block\""]);
        assert!(!is_literal("2020-01-01T00:00:00+00:00") && !is_literal("block"));
    }
}
