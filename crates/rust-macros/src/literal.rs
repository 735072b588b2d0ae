//! Texts and numbers as they stand in source code. Pure: works on the spelling.

/// The value of a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    /// `None`: it is an integer, but none that fits.
    Integer(Option<i128>),
    Float(f64),
    /// Bytes, characters and whatever else there is.
    Other,
}

/// Reads a literal as the compiler prints it, with the sign in front if it has one.
pub fn read(spelled: &str) -> Value {
    let (sign, digits) = match spelled.strip_prefix('-') {
        Some(rest) => (-1, rest.trim_start()),
        None => (1, spelled),
    };
    match digits.as_bytes() {
        [b'"', ..] => unescape(digits).map_or(Value::Other, Value::Text),
        [b'r', b'"' | b'#', ..] => raw(digits).map_or(Value::Other, Value::Text),
        [b'0'..=b'9', ..] => number(digits, sign),
        _ => Value::Other,
    }
}

fn number(digits: &str, sign: i128) -> Value {
    let plain: String = digits.chars().filter(|&sign| sign != '_').collect();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = plain.strip_prefix(prefix) {
            let rest = without_suffix(rest, radix);
            return Value::Integer(i128::from_str_radix(rest, radix).ok().map(|value| value * sign));
        }
    }
    let plain = ["f32", "f64"].iter().find_map(|suffix| plain.strip_suffix(suffix)).unwrap_or(&plain);
    if plain.contains(['.', 'e', 'E']) && !plain.contains(['i', 'u']) {
        return plain.parse().map_or(Value::Other, |value: f64| Value::Float(value * sign as f64));
    }
    let value = without_suffix(plain, 10).parse().ok();
    Value::Integer(value.map(|value: i128| value * sign))
}

/// A suffix such as `u64` begins at the first letter that is no digit.
fn without_suffix(digits: &str, radix: u32) -> &str {
    let end = digits.find(|sign: char| !sign.is_digit(radix)).unwrap_or(digits.len());
    &digits[..end]
}

fn raw(spelled: &str) -> Option<String> {
    let inner = spelled.strip_prefix('r')?.trim_matches('#');
    Some(inner.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// None where an escape is used that no option needs.
fn unescape(spelled: &str) -> Option<String> {
    let inner = spelled.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        text.push(match sign {
            '\\' => match signs.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                plain @ ('\\' | '"' | '\'') => plain,
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_signs_radixes_suffixes_and_gaps() {
        assert_eq!(read("42"), Value::Integer(Some(42)));
        assert_eq!(read("- 7i64"), Value::Integer(Some(-7)));
        assert_eq!(read("0x2A_u8"), Value::Integer(Some(42)));
        assert_eq!(read("1_000_000u64"), Value::Integer(Some(1_000_000)));
        assert_eq!(read(&"9".repeat(60)), Value::Integer(None));
        assert_eq!(read("1e-6"), Value::Float(1e-6));
        assert_eq!(read("-0.5f64"), Value::Float(-0.5));
    }

    #[test]
    fn texts_lose_their_quotes_and_escapes() {
        assert_eq!(read(r#""a\"b\\""#), Value::Text("a\"b\\".to_owned()));
        assert_eq!(read(r##"r#"a"#"##), Value::Text("a".to_owned()));
        assert_eq!(read("b'x'"), Value::Other);
        assert_eq!(read(r#""\u{41}""#), Value::Other);
    }
}
