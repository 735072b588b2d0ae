//! Deciding, remembering and printing happen inside hooks, where nothing may allocate.

use hermetic_policy::limits::REMEMBERED_MAX;
use hermetic_policy::{Policy, Target};
use stats_alloc::{Region, StatsAlloc, INSTRUMENTED_SYSTEM};
use std::alloc::System;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Throws text away, counting it.
struct Sink(usize);

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

// The only test of this file: another one's allocations would be counted as well.
#[test]
fn nothing_in_a_hook_allocates() {
    let mut policy = Policy::new(false, false);
    for entry in ["api.example.com:443", "*.example.org", "10.0.0.0/8", "/run/pg/", "[2001:db8::7]:443", "localhost:1"]
    {
        policy.add(entry).unwrap();
    }
    let ip = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let targets = [
        Target::Name { host: b"API.example.com.", port: Some(443) },
        Target::Name { host: b"\xff[::1%lo]", port: None },
        Target::Address { ip, port: Some(443) },
        Target::Unix { path: b"/run/pg/../pg/./s" },
        Target::Other { family: 17 },
    ];
    let mut sink = Sink(0);
    let region = Region::new(ALLOCATOR);
    for number in 0..2 * REMEMBERED_MAX as u32 {
        policy.remember(b"api.example.com", IpAddr::from(number.to_be_bytes()));
    }
    for target in &targets {
        policy.decide(target);
        write!(sink, "{target}: {}", policy.stance()).unwrap();
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0));
    assert!(sink.0 > 0);
}
