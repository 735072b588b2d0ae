//! The variables that choose how a run of tests goes. Read once.

use crate::error::Error;
use crate::real;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

pub const SEED: &str = "HERMETIC_SEED";
pub const RECORD: &str = "HERMETIC_RECORD";
pub const REPLAY: &str = "HERMETIC_REPLAY";
pub const STRICT_NETWORK: &str = "HERMETIC_STRICT_NETWORK";

/// What the variables say.
#[derive(Debug)]
pub struct Environment {
    /// The base of all seeds that follow from a test's name; fresh where nobody chose one.
    pub base: u64,
    /// Where journals of failing tests go.
    pub record: Option<PathBuf>,
    /// The journal to replay.
    pub replay: Option<PathBuf>,
    /// A refusal fails its test even where the error was swallowed.
    pub network_strict: bool,
}

/// The environment of this process, as it was when it was first asked for.
pub fn get() -> Result<&'static Environment, Error> {
    static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();
    let read = ENVIRONMENT.get_or_init(|| read(|name| env::var_os(name)));
    read.as_ref().map_err(|text| Error::Option(text.clone()))
}

fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Environment, String> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let record = variable(RECORD).map(absolute);
    let replay = variable(REPLAY).map(absolute);
    let base = match variable(SEED) {
        None => fresh_base()?,
        Some(text) => {
            let number = text.to_str().and_then(|text| text.parse().ok());
            number.ok_or_else(|| format!("{SEED}={text:?}: accepted is an integer from 0 to 2^64 - 1"))?
        }
    };
    let network_strict = match variable(STRICT_NETWORK) {
        None => false,
        Some(text) => match text.to_str() {
            Some("1" | "true") => true,
            Some("0" | "false") => false,
            _ => return Err(format!("{STRICT_NETWORK}={text:?}: accepted are 1 and 0")),
        },
    };
    // Whoever replays does not mean to record, even where a profile sets the directory.
    let record = if replay.is_some() { None } else { record };
    Ok(Environment { base, record, replay, network_strict })
}

/// A later change of directory does not move it.
fn absolute(path: OsString) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path))
}

fn fresh_base() -> Result<u64, String> {
    let mut bytes = [0; 8];
    real::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Environment, String> {
        read(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn values_are_checked_and_empty_is_absent() {
        let chosen = of(&[(SEED, "7"), (RECORD, "journals"), (STRICT_NETWORK, "1")]).unwrap();
        assert_eq!((chosen.base, chosen.network_strict), (7, true));
        assert!(chosen.record.unwrap().is_absolute());
        assert!(of(&[(RECORD, "")]).unwrap().record.is_none());
        assert!(of(&[(SEED, "-1")]).unwrap_err().contains("HERMETIC_SEED=\"-1\": accepted is"));
        assert!(of(&[(STRICT_NETWORK, "yes")]).unwrap_err().contains("accepted are 1 and 0"));
        assert!(of(&[(RECORD, "a"), (REPLAY, "b")]).unwrap().record.is_none());
    }
}
