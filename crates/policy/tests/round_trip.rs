//! Whatever parses prints in one spelling that parses to the same entry, and no text makes the parser fail otherwise.

use hermetic_policy::limits::ERROR_ENTRY_LEN_MAX;
use hermetic_policy::{Entry, Policy, Target};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::net::{IpAddr, Ipv6Addr};

/// The same cases on every run; fresh ones are the fuzzer's business.
fn fixed() -> ProptestConfig {
    ProptestConfig { cases: 1000, rng_seed: RngSeed::Fixed(42), failure_persistence: None, ..ProptestConfig::default() }
}

fn host() -> impl Strategy<Value = String> {
    let v4 = any::<[u8; 4]>().prop_map(|bytes| IpAddr::from(bytes).to_string());
    let v6 = any::<[u16; 8]>().prop_map(|groups| format!("[{}]", Ipv6Addr::from(groups)));
    let name = "[A-Za-z0-9_-]{1,12}(\\.[A-Za-z_-]{1,12}){0,3}\\.?";
    prop_oneof![v4, v6, name, name.prop_map(|name| format!("*.{name}")), Just("localhost".to_owned())]
}

/// Mostly entries, with slips.
fn entry() -> impl Strategy<Value = String> {
    let port =
        prop_oneof![Just(String::new()), any::<u16>().prop_map(|port| format!(":{port}")), Just(":https".to_owned())];
    let prefix = prop_oneof![3 => Just(String::new()), 1 => (0u8..140).prop_map(|len| format!("/{len}"))];
    let internet = (host(), prefix, port).prop_map(|(host, prefix, port)| host + &prefix + &port);
    prop_oneof![3 => internet, 1 => "(unix:)?[/@][a-z./]{0,20}", 1 => "[*\\[\\]:/.@a-f0-9%-]{0,24}", 1 => ".{0,24}"]
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn what_parses_survives_printing(text in entry()) {
        if let Ok(entry) = text.parse::<Entry>() {
            let printed = entry.to_string();
            let again: Entry = printed.parse().unwrap_or_else(|error| panic!("{text:?} printed: {error}"));
            prop_assert_eq!(again.to_string(), printed);
            prop_assert_eq!(again, entry);
        }
    }

    #[test]
    fn a_refusal_names_the_entry_and_what_is_accepted(text in entry()) {
        if let Err(error) = text.parse::<Entry>() {
            let start: String = text.chars().take(ERROR_ENTRY_LEN_MAX).collect();
            let said = error.to_string();
            let named = format!("{start:?}");
            prop_assert!(said.contains(&named), "{said}");
            prop_assert!(said.contains("accepted are host, host:port"));
            prop_assert!(!said.contains(char::is_control));
        }
    }

    #[test]
    fn an_address_is_allowed_by_its_own_target_text(bytes: [u8; 4], groups: [u16; 8], port in 1u16..) {
        for ip in [IpAddr::from(bytes), IpAddr::from(groups)] {
            let target = Target::Address { ip, port: Some(port) };
            let mut policy = Policy::new(false, false);
            policy.add(&target.to_string()).unwrap();
            prop_assert!(policy.decide(&target).is_allowed());
            let other = Target::Address { ip, port: Some(port.wrapping_add(1)) };
            prop_assert!(!policy.decide(&other).is_allowed());
        }
    }

    #[test]
    fn a_network_holds_what_shares_its_prefix(base: u32, address: u32, prefix_len in 0u32..=32) {
        let mask = u32::MAX.checked_shl(32 - prefix_len).unwrap_or(0);
        let mut policy = Policy::new(false, false);
        policy.add(&format!("{}/{prefix_len}", IpAddr::from((base & mask).to_be_bytes()))).unwrap();
        let decide = |address: u32| {
            policy.decide(&Target::Address { ip: IpAddr::from(address.to_be_bytes()), port: Some(1) }).is_allowed()
        };
        // The unspecified address is judged as loopback, so it stands outside of this arithmetic.
        prop_assume!(address != 0);
        prop_assert_eq!(decide(address), address & mask == base & mask);
        prop_assert!(base == 0 || decide(base));
    }

    #[test]
    fn deciding_takes_any_bytes(host in prop::collection::vec(any::<u8>(), 0..40), port: Option<u16>) {
        let mut policy = Policy::new(true, false);
        policy.add("*.example.com").unwrap();
        policy.add("/run/").unwrap();
        for target in [Target::Name { host: &host, port }, Target::Unix { path: &host }] {
            policy.decide(&target);
            prop_assert!(!target.to_string().contains(char::is_control));
        }
    }
}
