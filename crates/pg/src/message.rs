//! Messages between the supervisor and its clients: one line each, fields separated by tabs, with `\t`, `\n` and `\\`
//! standing for what would break that.

use crate::error::{Error, Kind, Result};

/// Longest message in bytes: a statement, or an answer with the end of a log.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// One message, with its line end.
///
/// ```
/// use hermetic_pg::message::{decode, encode};
/// let line = encode(&["take", "a\tb"]);
/// assert_eq!(line, "take\ta\\tb\n");
/// assert_eq!(decode(&line), ["take", "a\tb"]);
/// ```
pub fn encode<S: AsRef<str>>(fields: &[S]) -> String {
    let mut line = String::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push('\t');
        }
        for letter in field.as_ref().chars() {
            match letter {
                '\\' => line.push_str("\\\\"),
                '\n' => line.push_str("\\n"),
                '\t' => line.push_str("\\t"),
                other => line.push(other),
            }
        }
    }
    line.push('\n');
    line
}

/// The fields of a line. A backslash before anything else stands for what follows it.
pub fn decode(line: &str) -> Vec<String> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.split('\t').map(unescape).collect()
}

fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some(other)) => text.push(other),
            (other, _) => text.push(other),
        }
    }
    text
}

/// The answer to a request: fields, or an error with all its parts.
pub fn encode_answer(answer: &Result<Vec<String>>) -> String {
    match answer {
        Ok(fields) => encode(&[&["ok".to_owned()], fields.as_slice()].concat()),
        Err(error) => encode(&["error", error.kind.name(), &error.what, &error.command, &error.output, &error.log]),
    }
}

/// Reads what [`encode_answer`] wrote.
///
/// # Errors
/// The error that was sent; [`Kind::Stopped`] for an answer that is none.
pub fn decode_answer(line: &str) -> Result<Vec<String>> {
    let mut fields = decode(line);
    match fields.first().map(String::as_str) {
        Some("ok") => Ok(fields.split_off(1)),
        Some("error") if fields.len() == 6 => {
            let kind = Kind::of_name(&fields[1]).unwrap_or(Kind::Stopped);
            let error = Error::new(kind, &fields[2]).of_command(&fields[3]);
            Err(error.with_output(&fields[4]).with_log(&fields[5]))
        }
        _ => Err(Error::new(Kind::Stopped, "the supervisor of the cluster gave no answer: it has gone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(fields in prop::collection::vec(any::<String>(), 1..6)) {
            let line = encode(&fields);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(decode(&line), fields);
        }

        #[test]
        fn any_line_can_be_read(line in any::<String>()) {
            decode(&line);
            let _ = decode_answer(&line);
        }
    }

    #[test]
    fn errors_travel_whole() {
        let error = Error::new(Kind::Died, "a\nb").of_command("c\td").with_output("e\\").with_log("f\n");
        assert_eq!(decode_answer(&encode_answer(&Err(error.clone()))), Err(error));
        assert_eq!(decode_answer(""), Err(Error::new(Kind::Stopped, decode_answer("").unwrap_err().what)));
    }
}
