//! Moments as people write them, in nanoseconds since the Unix epoch.
//!
//! The part of ISO 8601 that is in use: a date, and behind a `T` or a space a time of day with or without seconds, a fraction
//! and an offset. Without an offset it is UTC.

use core::fmt;

const NS_PER_SEC: i64 = 1_000_000_000;

/// Why a text is no moment that a virtual clock can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstantError {
    Malformed,
    /// Virtual clocks count signed 64-bit nanoseconds from 1970 on.
    OutOfRange,
}

impl fmt::Display for InstantError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            InstantError::Malformed => "is no time; accepted is an ISO 8601 text such as 2020-01-01T00:00:00Z",
            InstantError::OutOfRange => "is outside the virtual clock; accepted are times from 1970 to 2262-04-11",
        })
    }
}

impl core::error::Error for InstantError {}

/// Reads a moment.
///
/// ```
/// use hermetic_model::instant::parse;
/// assert_eq!(parse("1970-01-02"), Ok(86_400_000_000_000));
/// assert_eq!(parse("2024-01-01T01:00:00.5+01:00"), parse("2024-01-01 00:00:00.500Z"));
/// assert!(parse("yesterday").is_err());
/// ```
pub fn parse(text: &str) -> Result<i64, InstantError> {
    let mut rest = Rest(text.trim().as_bytes());
    let moment = rest.moment().filter(|_| rest.0.is_empty()).ok_or(InstantError::Malformed)?;
    let seconds = i128::from(moment.seconds) - i128::from(moment.offset);
    let ns = seconds * i128::from(NS_PER_SEC) + i128::from(moment.ns);
    match i64::try_from(ns) {
        Ok(ns) if ns >= 0 => Ok(ns),
        _ => Err(InstantError::OutOfRange),
    }
}

struct Moment {
    seconds: i64,
    ns: i64,
    offset: i64,
}

/// What is still to be read.
struct Rest<'text>(&'text [u8]);

impl Rest<'_> {
    fn moment(&mut self) -> Option<Moment> {
        let year = self.number(4)?;
        self.skip(b"-")?;
        let month = self.number(2)?;
        self.skip(b"-")?;
        let day = self.number(2)?;
        if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
            return None;
        }
        let midnight = days_before(year, month, day) * 86_400;
        if self.0.is_empty() {
            return Some(Moment { seconds: midnight, ns: 0, offset: 0 });
        }
        self.skip(b"Tt ")?;
        let (hour, minute) = self.hour_and_minute()?;
        let second = if self.skip(b":").is_some() { self.number(2).filter(|&second| second < 60)? } else { 0 };
        let ns = if self.skip(b".,").is_some() { self.fraction()? } else { 0 };
        let offset = self.offset()?;
        Some(Moment { seconds: midnight + hour * 3600 + minute * 60 + second, ns, offset })
    }

    fn hour_and_minute(&mut self) -> Option<(i64, i64)> {
        let hour = self.number(2).filter(|&hour| hour < 24)?;
        self.skip(b":")?;
        Some((hour, self.number(2).filter(|&minute| minute < 60)?))
    }

    /// Digits below a nanosecond are dropped.
    fn fraction(&mut self) -> Option<i64> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        let padded = digits.iter().copied().chain(core::iter::repeat(b'0')).take(9);
        (len > 0).then(|| padded.fold(0, |ns, digit| ns * 10 + i64::from(digit - b'0')))
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.skip(b"Zz").is_some() {
            return Some(0);
        }
        let sign = if self.skip(b"-").is_some() { -1 } else { self.skip(b"+").map(|()| 1)? };
        let (hours, minutes) = self.hour_and_minute()?;
        Some(sign * (hours * 3600 + minutes * 60))
    }

    fn number(&mut self, len: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(len)?;
        let is_number = digits.iter().all(u8::is_ascii_digit);
        self.0 = rest;
        is_number.then(|| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    fn skip(&mut self, accepted: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        accepted.contains(first).then(|| self.0 = rest)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the Unix epoch, in the proleptic Gregorian calendar. Years count from March, so that a leap day ends one.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let second = 1_704_067_200;
        for text in ["2024-01-01", "2024-01-01T00:00Z", "2024-01-01 00:00:00", " 2024-01-01t02:00:00+02:00 "] {
            assert_eq!(parse(text), Ok(second * NS_PER_SEC), "{text}");
        }
        assert_eq!(parse("2024-02-29T23:59:59.1234567899Z"), Ok(1_709_251_199_123_456_789));
        assert_eq!(parse("2000-02-29"), Ok(951_782_400 * NS_PER_SEC));
    }

    #[test]
    fn refuses_what_is_no_moment_or_none_of_ours() {
        let wrong =
            ["", "2024", "2024-1-1", "2023-02-29", "2024-13-01", "2024-01-01T24:00", "2024-01-01T00:00:00+1", "é024"];
        for text in wrong.into_iter().chain(["2024-01-01T00:00:00.Z", "2024-01-01x", "1900-02-29"]) {
            assert_eq!(parse(text), Err(InstantError::Malformed), "{text}");
        }
        for text in ["1969-12-31T23:59:59", "2262-04-12", "9999-12-31"] {
            assert_eq!(parse(text), Err(InstantError::OutOfRange), "{text}");
        }
        assert_eq!(parse("2262-04-11T23:47:16.854775807Z"), Ok(i64::MAX));
    }
}
