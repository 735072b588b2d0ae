//! What is remembered for names: bounded, the newest wins, and nothing without an entry.

use hermetic_policy::limits::{ENTRIES_MAX, REMEMBERED_MAX};
use hermetic_policy::{By, Policy, Reason, Target, Verdict};
use std::net::IpAddr;

fn address(number: u32) -> IpAddr {
    IpAddr::from((0x0a00_0000 + number).to_be_bytes())
}

fn decide(policy: &Policy, number: u32) -> Verdict {
    policy.decide(&Target::Address { ip: address(number), port: Some(443) })
}

#[test]
fn the_oldest_gives_way() {
    let mut policy = Policy::new(false, false);
    policy.add("api.example.com:443").unwrap();
    for number in 0..=REMEMBERED_MAX as u32 {
        policy.remember(b"api.example.com", address(number));
        policy.remember(b"api.example.com", address(number));
    }
    assert_eq!(decide(&policy, 0), Verdict::Refused);
    assert_eq!(decide(&policy, 1), Verdict::Allowed(By::Remembered(0)));
    assert_eq!(decide(&policy, REMEMBERED_MAX as u32), Verdict::Allowed(By::Remembered(0)));
}

#[test]
fn numeric_names_are_not_remembered() {
    let mut policy = Policy::new(false, false);
    policy.add("10.0.0.1:80").unwrap();
    policy.remember(b"10.0.0.1", address(9));
    assert_eq!(decide(&policy, 9), Verdict::Refused);
}

#[test]
fn an_entry_given_twice_counts_once_and_too_many_are_refused() {
    let mut policy = Policy::new(true, true);
    for number in 0..ENTRIES_MAX {
        policy.add(&format!("host{number}.example")).unwrap();
        policy.add(&format!("HOST{number}.example.")).unwrap();
    }
    assert_eq!(policy.entries().len(), ENTRIES_MAX);
    let error = policy.add("one-more.example").unwrap_err();
    assert_eq!(*error.reason(), Reason::TooMany);
}
