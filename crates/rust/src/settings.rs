//! The options of a sandbox, and what the engine takes. Pure: nothing here asks the machine.

use crate::error::Error;
use crate::option::{self, Clock, Inherit, Monotonic, Order, Rng};
use hermetic_abi::flag;
use hermetic_model::instant;
use hermetic_policy::Policy;
use std::path::PathBuf;
use std::time::SystemTime;

const TICK_SECONDS_MAX: f64 = 86_400.0;
const NS_PER_SEC: f64 = 1e9;

/// A moment of the wall clock: an ISO 8601 text, seconds since the Unix epoch, or a `SystemTime`.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    Text(String),
    Seconds(f64),
    Nanoseconds(i128),
}

impl From<&str> for When {
    fn from(text: &str) -> When {
        When::Text(text.to_owned())
    }
}

impl From<String> for When {
    fn from(text: String) -> When {
        When::Text(text)
    }
}

impl From<f64> for When {
    fn from(seconds: f64) -> When {
        When::Seconds(seconds)
    }
}

impl From<i64> for When {
    fn from(seconds: i64) -> When {
        When::Nanoseconds(i128::from(seconds) * 1_000_000_000)
    }
}

impl From<i32> for When {
    fn from(seconds: i32) -> When {
        When::from(i64::from(seconds))
    }
}

impl From<SystemTime> for When {
    fn from(time: SystemTime) -> When {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => When::Nanoseconds(since.as_nanos() as i128),
            Err(before) => When::Nanoseconds(-(before.duration().as_nanos() as i128)),
        }
    }
}

impl When {
    /// Nanoseconds since the Unix epoch, as far as a virtual clock goes.
    pub(crate) fn ns(&self) -> Result<i64, Error> {
        let range = |shown: String| {
            Error::Option(format!(
                "now = {shown} is outside the virtual clock; accepted are times from 1970 to 2262-04-11"
            ))
        };
        match self {
            When::Text(text) => instant::parse(text).map_err(|error| Error::Option(format!("now = {text:?} {error}"))),
            When::Seconds(seconds) if (0.0..9.2e9).contains(seconds) => {
                let whole = seconds.trunc();
                Ok(whole as i64 * 1_000_000_000 + ((seconds - whole) * NS_PER_SEC).round() as i64)
            }
            When::Seconds(seconds) => Err(range(seconds.to_string())),
            When::Nanoseconds(ns) => {
                i64::try_from(*ns).ok().filter(|ns| *ns >= 0).ok_or_else(|| range(format!("{ns} ns")))
            }
        }
    }
}

/// What may be reached over the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing but what loopback and unix sockets allow.
    #[default]
    Block,
    /// Everything: the network is left alone.
    Off,
    /// These as well: `host`, `host:port`, `[v6]:port`, `*.domain`, CIDR, unix paths.
    Allow(Vec<String>),
}

impl<const N: usize> From<[&str; N]> for Network {
    fn from(entries: [&str; N]) -> Network {
        Network::Allow(entries.map(str::to_owned).to_vec())
    }
}

impl From<&[&str]> for Network {
    fn from(entries: &[&str]) -> Network {
        Network::Allow(entries.iter().map(|&entry| entry.to_owned()).collect())
    }
}

impl From<Vec<String>> for Network {
    fn from(entries: Vec<String>) -> Network {
        Network::Allow(entries)
    }
}

/// The options as they were chosen.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub seed: Option<i128>,
    pub now: Option<When>,
    pub tick: f64,
    pub clock: Clock,
    pub rng: Rng,
    pub network: Network,
    pub allow_loopback: bool,
    pub allow_unix: bool,
    pub strict_replay: bool,
    pub spin_limit: u64,
    pub monotonic: Monotonic,
    pub network_strict: bool,
    pub order: Option<Order>,
    pub inherit: Inherit,
    pub record: Option<PathBuf>,
    pub replay: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: None,
            now: None,
            tick: option::TICK,
            clock: Clock::default(),
            rng: Rng::default(),
            network: Network::default(),
            allow_loopback: option::ALLOW_LOOPBACK,
            allow_unix: option::ALLOW_UNIX,
            strict_replay: option::STRICT_REPLAY,
            spin_limit: option::SPIN_LIMIT,
            monotonic: Monotonic::default(),
            network_strict: option::NETWORK_STRICT,
            order: None,
            inherit: Inherit::default(),
            record: None,
            replay: None,
        }
    }
}

/// Checked settings in the engine's terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub flags: u32,
    pub now_ns: i64,
    pub tick_ps: u64,
    pub spin_limit: u64,
    /// Policy entries, one a line.
    pub allow: String,
}

impl Settings {
    /// Directory listings are sorted unless randomness is left alone.
    pub fn order(&self) -> Order {
        self.order.unwrap_or(if self.rng == Rng::Off { Order::Off } else { Order::Sorted })
    }

    /// Checks everything.
    pub fn plan(&self) -> Result<Plan, Error> {
        if !(0.0..=TICK_SECONDS_MAX).contains(&self.tick) {
            let accepted = "a number of seconds from 0 (frozen) to 86400";
            return Err(Error::Option(format!("tick = {}: accepted is {accepted}", self.tick)));
        }
        let now_ns = match &self.now {
            Some(when) => when.ns()?,
            None => When::from(option::NOW).ns()?,
        };
        let tick_ps = (self.tick * 1e12).round() as u64;
        Ok(Plan { flags: self.flags(), now_ns, tick_ps, spin_limit: self.spin_limit, allow: self.entries()? })
    }

    fn flags(&self) -> u32 {
        [
            (flag::CLOCK, self.clock == Clock::Virtual),
            (flag::ENTROPY, self.rng == Rng::All),
            (flag::NETWORK, self.network != Network::Off),
            (flag::ALLOW_LOOPBACK, self.allow_loopback),
            (flag::ALLOW_UNIX, self.allow_unix),
            (flag::ORDER_SORTED, self.order() == Order::Sorted),
            (flag::ORDER_CHAOS, self.order() == Order::Chaos),
            (flag::MONOTONIC_CONTINUE, self.monotonic == Monotonic::Continue),
            (flag::STRICT_REPLAY, self.strict_replay),
            (flag::NETWORK_STRICT, self.network_strict),
            (flag::INHERIT, self.inherit == Inherit::On),
            // A harness runs other tests beside this one.
            (flag::OWN_THREADS, true),
        ]
        .into_iter()
        .filter(|(_, is_wanted)| *is_wanted)
        .fold(0, |flags, (flag, _)| flags | flag)
    }

    fn entries(&self) -> Result<String, Error> {
        let Network::Allow(entries) = &self.network else { return Ok(String::new()) };
        let mut policy = Policy::new(self.allow_loopback, self.allow_unix);
        for entry in entries {
            if entry.contains('\n') {
                return Err(Error::Option(format!("network entry {entry:?}: a line break is never part of an entry")));
            }
            policy.add(entry).map_err(|error| Error::Option(error.to_string()))?;
        }
        Ok(entries.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_from_all_that_people_have() {
        let ns = |when: When| when.ns().unwrap();
        assert_eq!(ns("1970-01-01T00:00:01.5Z".into()), 1_500_000_000);
        assert_eq!(ns(1.5.into()), 1_500_000_000);
        assert_eq!(
            ns(2.into()),
            ns(SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(2)).unwrap().into())
        );
        for wrong in [When::from(-1.0), When::from(-1), When::from(f64::NAN), When::from("soon"), When::from(i64::MAX)]
        {
            assert!(wrong.ns().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_specification() {
        let plan = Settings::default().plan().unwrap();
        assert_eq!((plan.now_ns, plan.tick_ps, plan.spin_limit), (1_577_836_800_000_000_000, 1_000_000, 1_000_000));
        let expected = flag::CLOCK | flag::ENTROPY | flag::NETWORK | flag::ALLOW_LOOPBACK | flag::ALLOW_UNIX;
        let expected = expected | flag::ORDER_SORTED | flag::STRICT_REPLAY | flag::INHERIT | flag::OWN_THREADS;
        assert_eq!(plan.flags, expected);
    }

    #[test]
    fn order_follows_randomness_unless_it_is_chosen() {
        let free = Settings { rng: Rng::Off, ..Settings::default() };
        assert_eq!(free.order(), Order::Off);
        assert_eq!(Settings { order: Some(Order::Chaos), ..free }.order(), Order::Chaos);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_accepted() {
        let error = |settings: Settings| settings.plan().unwrap_err().to_string();
        let tick = error(Settings { tick: -1.0, ..Settings::default() });
        assert!(tick.starts_with("tick = -1: accepted is"), "{tick}");
        let entry = error(Settings { network: ["nowhere:many"].into(), ..Settings::default() });
        assert!(entry.contains("nowhere:many"), "{entry}");
    }
}
