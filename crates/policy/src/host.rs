//! Hosts as programs spell them: case, trailing dots, brackets, zones, short and octal IPv4 forms, mapped IPv6.
//!
//! Works on bytes and without allocation, because what a C program hands to the resolver need not be text.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that mean this machine in every installation of Linux.
const MACHINE_NAMES: [&[u8]; 4] = [b"localhost", b"localhost.localdomain", b"ip6-localhost", b"ip6-loopback"];

/// What a spelled host turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'text> {
    /// A numeric address, canonical.
    Address(IpAddr),
    /// A name without brackets, zone and trailing dot, in its original case.
    Name(&'text [u8]),
}

/// Reads a host the way resolvers do. An empty one means this machine.
pub fn read(spelled: &[u8]) -> Host<'_> {
    let bare = without_brackets(spelled);
    if bare.is_empty() {
        return Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    if let Some(address) = parse_v4(bare) {
        return Host::Address(canonical(IpAddr::V4(address)));
    }
    if let Some(address) = parse_v6(bare) {
        return Host::Address(canonical(IpAddr::V6(address)));
    }
    Host::Name(bare.strip_suffix(b".").unwrap_or(bare))
}

/// Whether a name (as [`read`] gives it) belongs to this machine. Everything below `localhost` does, by RFC 6761.
pub fn is_machine_name(name: &[u8]) -> bool {
    is_the_machine(name) || is_below(name, b"localhost")
}

/// Whether a name is one of the machine itself, in all of its loopback addresses.
pub fn is_the_machine(name: &[u8]) -> bool {
    MACHINE_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether `name` is a proper subdomain of `domain`.
pub fn is_below(name: &[u8], domain: &[u8]) -> bool {
    let Some(at) = name.len().checked_sub(domain.len()) else {
        return false;
    };
    at > 1 && name[at - 1] == b'.' && name[at..].eq_ignore_ascii_case(domain)
}

/// The one spelling of an address: IPv4 inside IPv6 comes out, and the unspecified address, to which Linux connects as to
/// loopback, becomes loopback.
pub fn canonical(address: IpAddr) -> IpAddr {
    match unmapped(address) {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

/// `::ffff:a.b.c.d` as IPv4, all else as it is.
pub fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// IPv6 text with an optional zone, which only chooses an interface.
pub fn parse_v6(text: &[u8]) -> Option<Ipv6Addr> {
    let address = match text.iter().position(|byte| *byte == b'%') {
        // "fe80::1%" names no interface, and no resolver takes it.
        Some(at) if at + 1 == text.len() => return None,
        Some(at) => &text[..at],
        None => text,
    };
    core::str::from_utf8(address).ok()?.parse().ok()
}

/// The forms of `inet_aton`: one to four parts, each decimal, octal (`0…`) or hexadecimal (`0x…`), the last of which fills
/// all remaining bytes.
pub fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut address: u32 = 0;
    let mut parts = text.split(|byte| *byte == b'.').peekable();
    for at in 0..4u32 {
        let value = parse_part(parts.next()?)?;
        if parts.peek().is_none() {
            let free_bits = 32 - 8 * at;
            let fits = u64::from(value) < 1u64 << free_bits;
            return fits.then_some(Ipv4Addr::from(address | value));
        }
        if value > 0xff {
            return None;
        }
        address |= value << (24 - 8 * at);
    }
    None
}

fn parse_part(part: &[u8]) -> Option<u32> {
    let (digits, radix) = match part {
        [b'0', b'x' | b'X', rest @ ..] => (rest, 16),
        [b'0', rest @ ..] if !rest.is_empty() => (rest, 8),
        _ => (part, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |value, byte| {
        let digit = char::from(*byte).to_digit(radix)?;
        value.checked_mul(radix)?.checked_add(digit)
    })
}

fn without_brackets(spelled: &[u8]) -> &[u8] {
    match spelled {
        [b'[', inner @ .., b']'] => inner,
        _ => spelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> Option<Ipv4Addr> {
        parse_v4(text.as_bytes())
    }

    #[test]
    fn reads_the_forms_of_inet_aton() {
        let machine = Some(Ipv4Addr::LOCALHOST);
        for spelled in ["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f.1", "0x7F000001", "0177.0.0.01"] {
            assert_eq!(v4(spelled), machine, "{spelled}");
        }
        for spelled in [
            "",
            ".",
            "127.",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.256",
            "1.16777216",
            "4294967296",
            "09",
            "0x",
            "1..2",
            "a.b",
        ] {
            assert_eq!(v4(spelled), None, "{spelled}");
        }
    }

    #[test]
    fn reads_zones_brackets_and_dots() {
        assert_eq!(read(b"[fe80::1%eth0]"), Host::Address("fe80::1".parse().unwrap()));
        assert_eq!(read(b"fe80::1%"), Host::Name(b"fe80::1%"));
        assert_eq!(read(b"::ffff:10.0.0.1"), Host::Address("10.0.0.1".parse().unwrap()));
        assert_eq!(read(b"Example.COM."), Host::Name(b"Example.COM"));
        assert_eq!(read(b""), Host::Address("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_domain_is_not_below_itself_or_its_suffixes() {
        assert!(is_below(b"a.B.example", b"b.example"));
        for name in [&b"b.example"[..], b".b.example", b"ab.example", b"example", b""] {
            assert!(!is_below(name, b"b.example"));
        }
    }
}
