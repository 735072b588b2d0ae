//! Answers: objects of JSON on one line. Written here because nothing else of JSON is needed.

/// A value of an answer.
pub enum Value<'a> {
    Text(&'a str),
    Number(u64),
    /// JSON already.
    Raw(&'a str),
}

/// An object with these members, in this order.
pub fn object(members: &[(&str, Value<'_>)]) -> String {
    let member = |(name, value): &(&str, Value<'_>)| {
        let value = match value {
            Value::Text(text) => quoted(text),
            Value::Number(number) => number.to_string(),
            Value::Raw(json) => (*json).to_owned(),
        };
        format!("{}: {value}", quoted(name))
    };
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_json_wants_it() {
        let line = object(&[("a", Value::Text("x\"\\\n\u{e9}")), ("b", Value::Number(7)), ("c", Value::Raw("{}"))]);
        assert_eq!(line, "{\"a\": \"x\\\"\\\\\\u000aé\", \"b\": 7, \"c\": {}}");
    }
}
