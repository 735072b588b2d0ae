//! A journal that is to be replayed: its settings replace those of the code, its values are fed back.

use crate::error::Error;
use crate::journals;
use crate::option::{Clock, Monotonic, Order, Rng};
use crate::settings::{Network, Settings, When};
use hermetic_abi::flag;
use hermetic_journal::{Head, Journal};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Facts of the fingerprint that make a replay less than faithful where they differ, and what they are called.
const COMPARED: [(&str, &str); 5] = [
    ("platform", "platform"),
    ("machine", "machine"),
    ("tz_env", "TZ"),
    ("cpu_count", "CPU count"),
    ("git_revision", "git revision"),
];

/// A journal, read.
#[derive(Debug)]
pub struct Recorded {
    pub path: PathBuf,
    pub raw: Vec<u8>,
    /// Of the engine's flags: what had been chosen, and was not left to the real world.
    pub pinned: u32,
    head: Head,
}

impl Recorded {
    pub fn read(path: &Path) -> Result<Recorded, Error> {
        let shown = path.display();
        let bytes =
            fs::read(path).map_err(|error| Error::Journal(format!("cannot read the journal {shown}: {error}")))?;
        let journal = Journal::decode(&bytes).map_err(|error| {
            let hint = error.hint();
            let hint = if hint.is_empty() { String::new() } else { format!("\n  hint: {hint}") };
            Error::Journal(format!("cannot use the journal {shown}: {error}{hint}"))
        })?;
        let head = Head::parse(journal.head_text())
            .map_err(|error| Error::Journal(format!("cannot use the journal {shown}: {error}")))?;
        let pinned = head.config.get("pinned").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let bit = |name: &str, bit: u32| if pinned.iter().any(|word| word == name) { bit } else { 0 };
        let pinned = bit("now", flag::PINNED_CLOCK) | bit("seed", flag::PINNED_SEED);
        Ok(Recorded { path: path.to_owned(), raw: journal.to_raw(), pinned, head })
    }

    /// The test that it was recorded from.
    pub fn test(&self) -> Option<&str> {
        self.head.test.as_deref()
    }

    /// Puts the recorded settings in the place of the caller's.
    pub fn replace(&self, settings: &mut Settings) -> Result<(), Error> {
        let config = &self.head.config;
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let switch = |name: &str, own: bool| config.get(name).and_then(Value::as_bool).unwrap_or(own);
        if let Some(seed) = text("seed") {
            let number = seed.parse().map_err(|_| self.unusable("seed", seed))?;
            settings.seed = Some(number);
        }
        if let Some(ns) = config.get("now").and_then(Value::as_i64) {
            settings.now = Some(When::Nanoseconds(i128::from(ns)));
        }
        settings.tick = config.get("tick").and_then(Value::as_f64).unwrap_or(settings.tick);
        settings.allow_loopback = switch("allow_loopback", settings.allow_loopback);
        settings.allow_unix = switch("allow_unix", settings.allow_unix);
        self.choice("clock", Clock::from_name, &mut settings.clock)?;
        self.choice("rng", Rng::from_name, &mut settings.rng)?;
        self.choice("monotonic", Monotonic::from_name, &mut settings.monotonic)?;
        let mut order = settings.order();
        self.choice("order", Order::from_name, &mut order)?;
        settings.order = Some(order);
        settings.network = match config.get("network") {
            Some(Value::String(word)) if word == "block" => Network::Block,
            Some(Value::String(_)) => Network::Off,
            Some(Value::Array(entries)) => {
                Network::Allow(entries.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => settings.network.clone(),
        };
        Ok(())
    }

    fn choice<T>(&self, name: &str, read: fn(&str) -> Option<T>, into: &mut T) -> Result<(), Error> {
        if let Some(word) = self.head.config.get(name).and_then(Value::as_str) {
            *into = read(word).ok_or_else(|| self.unusable(name, word))?;
        }
        Ok(())
    }

    fn unusable(&self, name: &str, value: &str) -> Error {
        let path = self.path.display();
        Error::Journal(format!("the journal {path} has a setting that cannot be used here: {name} = {value:?}"))
    }

    /// What makes the replay less than faithful, one sentence each.
    pub fn warnings(&self, folder: Option<&str>) -> Vec<String> {
        let now = journals::fingerprint(folder);
        let differs = |name: &str, words: &str| {
            let then = self.head.fingerprint.get(name).filter(|then| !then.is_null())?;
            let now = now.get(name).unwrap_or(&Value::Null);
            (then != now).then(|| format!("{words} differs: recorded with {then}, replayed with {now}"))
        };
        let mut warnings: Vec<String> = COMPARED.iter().filter_map(|(name, words)| differs(name, words)).collect();
        let config = &self.head.config;
        if config.get("network").is_some_and(|network| network != "block") {
            warnings.push("the recording allowed network access: its traffic is not in the journal".to_owned());
        }
        if config.get("clock").is_some_and(|clock| clock == "off") {
            warnings.push("the recording left the clock real: its readings are not in the journal".to_owned());
        }
        warnings
    }
}
