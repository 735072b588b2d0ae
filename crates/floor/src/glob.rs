//! Patterns in which `*` stands for any run of characters; names of variables are compared without case.

/// Whether a name matches a pattern.
///
/// ```
/// use hermetic_floor::glob::matches;
/// assert!(matches("*_TOKEN", "npm_token") && matches("PG*", "PGHOST"));
/// assert!(!matches("*_TOKEN", "TOKENS") && !matches("PG*", "APG"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    matches_bytes(pattern.as_bytes(), name.as_bytes())
}

fn matches_bytes(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where the last star stood, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(letter) if letter.eq_ignore_ascii_case(&name[seen]) => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((from, taken)) => {
                    star = Some((from, taken + 1));
                    at = from + 1;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&letter| letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_star_takes_anything(before in "[A-Z_]{0,4}", middle in "[A-Z_]{0,6}", after in "[A-Z_]{0,4}") {
            let (pattern, name) = (format!("{before}*{after}"), format!("{before}{middle}{after}"));
            prop_assert!(matches(&pattern, &name) && matches(&pattern, &name.to_lowercase()));
        }

        #[test]
        fn without_a_star_only_the_name_itself_matches(one in "[A-Z_]{0,6}", other in "[A-Z_]{0,6}") {
            prop_assert_eq!(matches(&one, &other), one == other);
        }
    }
}
