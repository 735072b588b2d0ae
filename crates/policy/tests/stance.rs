//! What messages say about a policy and about a target.

use hermetic_policy::{Policy, Target};

#[test]
fn a_stance_lists_what_is_allowed() {
    assert_eq!(Policy::new(false, false).stance().to_string(), "allows nothing");
    assert_eq!(Policy::new(true, true).stance().to_string(), "allows loopback, unix sockets");
    let mut policy = Policy::new(false, true);
    for number in 0..10 {
        policy.add(&format!("h{number}.example:80")).unwrap();
    }
    let said = policy.stance().to_string();
    assert!(said.starts_with("allows unix sockets, h0.example:80, h1.example:80"));
    assert!(said.ends_with("h7.example:80 and 2 more"));
}

#[test]
fn a_target_prints_as_the_entry_that_would_allow_it() {
    let name = |host, port| Target::Name { host, port }.to_string();
    assert_eq!(name(b"db", Some(5432)), "db:5432");
    assert_eq!(name(b"", None), "localhost");
    assert_eq!(name(b"fe80::1", Some(80)), "[fe80::1]:80");
    assert_eq!(name(b"[::1]", Some(80)), "[::1]:80");
    assert_eq!(name(b"a\x1b\xff", None), "a\\u{1b}\\xff");
    let address = |ip: &str, port| Target::Address { ip: ip.parse().unwrap(), port }.to_string();
    assert_eq!(address("::ffff:10.0.0.1", Some(80)), "10.0.0.1:80");
    assert_eq!(address("2001:db8::7", None), "2001:db8::7");
    assert_eq!(Target::Unix { path: b"/run/x\0\0" }.to_string(), "/run/x");
    assert_eq!(Target::Unix { path: b"\0dbus" }.to_string(), "unix:@dbus");
    assert_eq!(Target::Unix { path: b"x" }.to_string(), "unix:x");
    assert_eq!(Target::Other { family: 17 }.to_string(), "address family 17");
}
