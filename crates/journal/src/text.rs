//! Times, durations and bytes as people read them. Pure text; no zone but UTC, no locale.

use std::fmt::Write as _;

const SECOND_NS: i64 = 1_000_000_000;

/// `2020-01-01 00:00:00.000001`, in UTC, with as many digits (0, 3, 6 or 9) as the value needs.
pub(crate) fn date(ns: i64) -> String {
    let (seconds, fraction) = (ns.div_euclid(SECOND_NS), ns.rem_euclid(SECOND_NS));
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{}", digits(fraction))
}

/// `1.5 s`, `20 ms`, `3 µs`, `7 ns`: the largest unit that leaves a whole part.
pub(crate) fn duration(ns: i64) -> String {
    let size = ns.unsigned_abs();
    let sign = if ns < 0 { "-" } else { "" };
    let (unit, name) = match size {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "µs"),
        _ => (1, "ns"),
    };
    let (whole, rest) = (size / unit, size % unit);
    let mut text = format!("{sign}{whole}");
    if rest != 0 {
        let width = unit.ilog10() as usize;
        let _ = write!(text, ".{}", format!("{rest:0width$}").trim_end_matches('0'));
    }
    let _ = write!(text, " {name}");
    text
}

/// `1000.000001`: seconds with as many digits (0, 3, 6 or 9) as the value needs.
pub(crate) fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let size = ns.unsigned_abs();
    format!("{sign}{}{}", size / SECOND_NS as u64, digits((size % SECOND_NS as u64) as i64))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The inverse of [`hex`].
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A text on one line, with what a terminal would act upon written out.
pub(crate) fn line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, letter| {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
        line
    })
}

/// As [`line()`], for names that need not be UTF-8.
pub(crate) fn name(bytes: &[u8]) -> String {
    line(&String::from_utf8_lossy(bytes))
}

fn digits(fraction_ns: i64) -> String {
    match fraction_ns {
        0 => String::new(),
        _ if fraction_ns % 1_000_000 == 0 => format!(".{:03}", fraction_ns / 1_000_000),
        _ if fraction_ns % 1_000 == 0 => format!(".{:06}", fraction_ns / 1_000),
        _ => format!(".{fraction_ns:09}"),
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar. Counts in eras of 400 years
/// that begin in March, so that the leap day comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(-1), "1969-12-31 23:59:59.999999999");
        assert_eq!(date(1_582_934_400_000_001_000), "2020-02-29 00:00:00.000001");
        assert_eq!(date(i64::MAX), "2262-04-11 23:47:16.854775807");
        assert_eq!(date(i64::MIN), "1677-09-21 00:12:43.145224192");
    }

    #[test]
    fn durations() {
        assert_eq!(duration(1_500_000_000), "1.5 s");
        assert_eq!(duration(20_000_000), "20 ms");
        assert_eq!(duration(-3_001), "-3.001 µs");
        assert_eq!(duration(0), "0 ns");
        assert_eq!(duration(i64::MIN), "-9223372036.854775808 s");
    }

    #[test]
    fn seconds_and_bytes() {
        assert_eq!(seconds(1_000_000_001_000), "1000.000001");
        assert_eq!(seconds(i64::MIN), "-9223372036.854775808");
        assert_eq!(unhex(&hex(&[0, 255, 16])), Some(vec![0, 255, 16]));
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
        assert_eq!(line("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
    }
}
