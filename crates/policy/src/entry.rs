//! One entry of a policy: what it covers, and how it is written.
//!
//! [`Entry`] prints in the one canonical spelling, which reads back as an equal entry.

use crate::host::{self, Host};
use crate::path;
use alloc::boxed::Box;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// What one entry allows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub(crate) scope: Scope,
    /// The one port that is allowed; none means all of them. Always none for unix sockets.
    pub(crate) port: Option<u16>,
}

/// The hosts or sockets of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// `localhost`: this machine, by all of its names and loopback addresses.
    Machine,
    /// A host by name, lower case.
    Name(Box<str>),
    /// `*.domain`: every host below the domain, at any depth. Holds the domain, lower case.
    Subdomains(Box<str>),
    /// One address, canonical.
    Address(IpAddr),
    /// A block of addresses.
    Network(Network),
    /// A unix socket by absolute path, normalised.
    Path(Box<str>),
    /// All unix sockets below a folder; ends with `/`.
    Folder(Box<str>),
    /// A unix socket of the abstract kind, without its leading NUL.
    Abstract(Box<str>),
}

/// A block of addresses in CIDR terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    base: IpAddr,
    prefix_len: u8,
}

impl Network {
    /// The block of `prefix_len` leading bits in which `address` lies; none if the family has fewer bits.
    pub fn around(address: IpAddr, prefix_len: u8) -> Option<Network> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let base = (prefix_len <= bits).then(|| masked(address, prefix_len))?;
        match base {
            // IPv4 addresses are compared as such, so a block of mapped ones is a block of IPv4.
            IpAddr::V6(v6) if prefix_len >= 96 && v6.to_ipv4_mapped().is_some() => {
                Some(Network { base: host::unmapped(base), prefix_len: prefix_len - 96 })
            }
            _ => Some(Network { base, prefix_len }),
        }
    }

    pub fn base(&self) -> IpAddr {
        self.base
    }

    pub fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// Whether the block holds a canonical address. Families do not mix.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.base.is_ipv4() == address.is_ipv4() && masked(address, self.prefix_len) == self.base
    }
}

fn masked(address: IpAddr, prefix_len: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix_len)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix_len)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(v6.to_bits() & mask))
        }
    }
}

impl Entry {
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether the entry covers a host by name or address. Where the question has no port, an entry for any port will do.
    pub(crate) fn covers_host(&self, asked: &Host<'_>, port: Option<u16>) -> bool {
        self.covers_port(port)
            && match (&self.scope, asked) {
                (Scope::Machine, Host::Address(address)) => address.is_loopback(),
                (Scope::Machine, Host::Name(name)) => host::is_the_machine(name),
                (Scope::Name(own), Host::Name(name)) => name.eq_ignore_ascii_case(own.as_bytes()),
                (Scope::Subdomains(domain), Host::Name(name)) => host::is_below(name, domain.as_bytes()),
                (Scope::Address(own), Host::Address(address)) => own == address,
                (Scope::Network(block), Host::Address(address)) => block.contains(*address),
                _ => false,
            }
    }

    pub(crate) fn covers_port(&self, port: Option<u16>) -> bool {
        self.port.is_none() || port.is_none() || self.port == port
    }

    /// Whether the entry covers a unix socket, given as in `sun_path`.
    pub(crate) fn covers_unix(&self, asked: &[u8]) -> bool {
        match (&self.scope, asked) {
            (Scope::Abstract(own), [0, name @ ..]) => name == own.as_bytes(),
            (Scope::Path(own), [b'/', ..]) => path::is_same(asked, own.as_bytes()),
            (Scope::Folder(own), [b'/', ..]) => path::is_below(asked, own.as_bytes()),
            _ => false,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Machine => out.write_str("localhost")?,
            Scope::Name(name) => out.write_str(name)?,
            Scope::Subdomains(domain) => write!(out, "*.{domain}")?,
            Scope::Address(address) => write_address(out, *address, self.port.is_some())?,
            Scope::Network(block) => {
                write_address(out, block.base, self.port.is_some())?;
                write!(out, "/{}", block.prefix_len)?;
            }
            Scope::Path(path) | Scope::Folder(path) => out.write_str(path)?,
            Scope::Abstract(name) => write!(out, "unix:@{name}")?,
        }
        match self.port {
            Some(port) => write!(out, ":{port}"),
            None => Ok(()),
        }
    }
}

/// An address as an entry spells it: IPv6 gets brackets where a port follows.
pub(crate) fn write_address(out: &mut fmt::Formatter<'_>, address: IpAddr, has_port: bool) -> fmt::Result {
    match address {
        IpAddr::V6(v6) if has_port => write!(out, "[{v6}]"),
        other => write!(out, "{other}"),
    }
}
