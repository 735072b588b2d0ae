//! Why an entry cannot be part of a policy. Each text names the entry, what is wrong, and what to write instead.

use crate::limits::{ENTRIES_MAX, ERROR_ENTRY_LEN_MAX, LABEL_LEN_MAX, NAME_LEN_MAX, UNIX_PATH_LEN_MAX};
use crate::service;
use alloc::string::String;
use core::fmt;

/// An entry that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryError {
    entry: String,
    reason: Reason,
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    Empty,
    /// A URL, or a host with a path behind it. Holds the entry to write instead, where one can be made out.
    Url {
        instead: Option<String>,
    },
    /// A port outside 1..=65535, or none after the colon.
    Port {
        port: String,
    },
    /// A port by a name that is not in the table.
    Service {
        name: String,
    },
    /// Neither a name nor an address.
    Name {
        host: String,
    },
    /// Letters outside ASCII.
    NotAscii {
        host: String,
    },
    /// Numeric, but no address.
    Address {
        host: String,
    },
    /// More than one colon, and no IPv6 address.
    Colons,
    /// Brackets that do not hold an IPv6 address.
    Brackets,
    /// Something else than a length behind the slash, or a length that the family does not have.
    Prefix {
        prefix: String,
        len_max: u8,
    },
    /// Bits are set behind the prefix. Holds the network to write instead.
    HostBits {
        network: String,
    },
    /// A `*` anywhere else than as the whole first label.
    Wildcard,
    /// `*`, or the like: everything.
    Everything,
    /// A unix path that is relative, too long, or holds control characters.
    UnixPath,
    /// The policy is full.
    TooMany,
}

impl EntryError {
    pub(crate) fn new(entry: &str, reason: Reason) -> EntryError {
        EntryError { entry: entry.into(), reason }
    }

    /// The entry as it was given.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

const ACCEPTED: &str = "accepted are host, host:port, *.domain, an IP address, [IPv6]:port, a network such as \
                        10.0.0.0/8, and an absolute unix socket path (one that ends in / covers everything below)";

impl fmt::Display for EntryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.entry.char_indices().nth(ERROR_ENTRY_LEN_MAX).map_or(self.entry.len(), |(end, _)| end);
        let (shown, dots) = (&self.entry[..end], if end < self.entry.len() { "…" } else { "" });
        write!(out, "cannot use network entry {shown:?}{dots}: {}; {ACCEPTED}", self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Empty => out.write_str("it is empty"),
            Reason::Url { instead: Some(instead) } => {
                write!(out, "it is a URL or has a path, and rules are about hosts and ports: write \"{instead}\"")
            }
            Reason::Url { instead: None } => {
                out.write_str("it is a URL or has a path, and rules are about hosts and ports: write its host and port")
            }
            Reason::Port { port } => write!(out, "{port:?} is not a port: write a number from 1 to 65535"),
            Reason::Service { name } => {
                write!(out, "{name:?} is not a known service: write the port's number, or one of ")?;
                let mut separator = "";
                for known in service::names() {
                    write!(out, "{separator}{known}")?;
                    separator = ", ";
                }
                Ok(())
            }
            Reason::Name { host } => write!(
                out,
                "{host:?} is not a host name: labels of letters, digits, - and _, at most {LABEL_LEN_MAX} each and \
                 {NAME_LEN_MAX} in all, separated by single dots"
            ),
            Reason::NotAscii { host } => {
                write!(out, "{host:?} is not ASCII: write the name as it is looked up, in its xn-- form")
            }
            Reason::Address { host } => write!(
                out,
                "{host:?} is numeric, but not an address: write four numbers from 0 to 255 without leading zeros, or \
                 host:port if it was meant as a port"
            ),
            Reason::Colons => {
                out.write_str("it has more than one colon and is not an IPv6 address: write [address]:port for IPv6")
            }
            Reason::Brackets => {
                out.write_str("brackets hold exactly one IPv6 address: write [address] or [address]:port")
            }
            Reason::Prefix { prefix, len_max } => {
                write!(
                    out,
                    "{prefix:?} is not the length of a network: write a number from 0 to {len_max} after the slash"
                )
            }
            Reason::HostBits { network } => {
                write!(out, "it has bits set beyond its prefix: write {network}, or the address without a prefix")
            }
            Reason::Wildcard => out.write_str("* stands for whole first labels only: write *.domain"),
            Reason::Everything => {
                out.write_str("it would allow everything: write network=\"off\" to leave the network alone")
            }
            Reason::UnixPath => write!(
                out,
                "a unix socket is written as an absolute path or unix:@name, at most {UNIX_PATH_LEN_MAX} bytes without \
                 control characters"
            ),
            Reason::TooMany => write!(out, "the policy has {ENTRIES_MAX} entries already: use networks or *.domain"),
        }
    }
}

impl core::error::Error for EntryError {}
