//! The policy parser and its decisions: no text makes them fail otherwise than by an error, what parses prints and parses
//! again, and an entry allows the target that prints like it.
#![no_main]

use hermetic_policy::{Entry, Policy, Scope, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first line is an entry, the rest a host or path as a program would hand it over.
    let (line, asked) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let mut policy = Policy::new(false, false);
    if let Ok(text) = core::str::from_utf8(line) {
        match text.parse::<Entry>() {
            Ok(entry) => check_entry(&mut policy, &entry),
            Err(error) => assert!(error.to_string().contains("accepted are")),
        }
    }
    for target in [
        Target::Name { host: asked, port: Some(443) },
        Target::Name { host: asked, port: None },
        Target::Unix { path: asked },
    ] {
        policy.decide(&target);
        assert!(!target.to_string().contains(char::is_control));
    }
    policy.remember(asked, [192, 0, 2, 7].into());
});

fn check_entry(policy: &mut Policy, entry: &Entry) {
    let printed = entry.to_string();
    let again: Entry = printed.parse().unwrap_or_else(|error| panic!("{entry:?}: {error}"));
    assert_eq!(again, *entry, "{printed:?}");
    policy.add(&printed).unwrap();
    let port = entry.port().or(Some(1));
    let is_allowed = match entry.scope() {
        Scope::Machine => policy.decide(&Target::Name { host: b"localhost", port }),
        Scope::Name(name) => policy.decide(&Target::Name { host: name.as_bytes(), port }),
        Scope::Subdomains(domain) => policy.decide(&Target::Name { host: format!("a.{domain}").as_bytes(), port }),
        Scope::Address(ip) => policy.decide(&Target::Address { ip: *ip, port }),
        Scope::Path(path) => policy.decide(&Target::Unix { path: path.as_bytes() }),
        Scope::Folder(folder) => policy.decide(&Target::Unix { path: format!("{folder}x").as_bytes() }),
        Scope::Abstract(name) => policy.decide(&Target::Unix { path: format!("\0{name}").as_bytes() }),
        // The base of a network may be the unspecified address, which is judged as loopback.
        _ => return,
    };
    assert!(is_allowed.is_allowed(), "{printed:?} does not allow itself");
}
