//! What a program wants to reach, and the answer.

use crate::entry::write_address;
use core::fmt;
use core::net::IpAddr;

/// Something that a program wants to reach, as a hook sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'call> {
    /// A look-up, or a connection by name. `port` is none where the look-up has none. An empty host is this machine; a
    /// numeric one is judged as the address it means.
    Name { host: &'call [u8], port: Option<u16> },
    /// A connection or send to an address, or its reverse look-up (which has no port).
    Address { ip: IpAddr, port: Option<u16> },
    /// A unix socket as in `sun_path`: a leading NUL marks the abstract kind; else the path ends at its first NUL. A relative
    /// path is judged as it is and matches no entry, so callers put the working directory in front of it first.
    Unix { path: &'call [u8] },
    /// Any other address family, by its number.
    Other { family: u16 },
}

/// Raw frames: the one other family that reaches the network past the sockets which this policy judges.
pub(crate) const AF_PACKET: u16 = 17;

/// The answer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed(By),
    Refused,
}

/// What allowed a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// Loopback is allowed as a whole.
    Loopback,
    /// Unix sockets are allowed as a whole.
    Unix,
    /// The entry with that index.
    Entry(usize),
    /// The address was remembered for a name that the entry with that index allows.
    Remembered(usize),
    /// The address family is not the policy's business.
    Family,
}

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Verdict::Allowed(_))
    }
}

/// The target as an entry would spell it, so that a message can be pasted into a policy.
impl fmt::Display for Target<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Name { host, port } => {
                let is_v6 = host.contains(&b':') && !host.starts_with(b"[");
                match (host.is_empty(), is_v6 && port.is_some()) {
                    (true, _) => out.write_str("localhost")?,
                    (_, true) => write!(out, "[{}]", Printable(host))?,
                    (_, false) => write!(out, "{}", Printable(host))?,
                }
                write_port(out, *port)
            }
            Target::Address { ip, port } => {
                write_address(out, crate::host::unmapped(*ip), port.is_some())?;
                write_port(out, *port)
            }
            Target::Unix { path: [] } => out.write_str("unix:(unnamed)"),
            Target::Unix { path: [0, name @ ..] } => write!(out, "unix:@{}", Printable(name)),
            Target::Unix { path } => {
                let prefix = if path.starts_with(b"/") { "" } else { "unix:" };
                write!(out, "{prefix}{}", Printable(until_nul(path)))
            }
            Target::Other { family } => write!(out, "address family {family}"),
        }
    }
}

fn write_port(out: &mut fmt::Formatter<'_>, port: Option<u16>) -> fmt::Result {
    match port {
        Some(port) => write!(out, ":{port}"),
        None => Ok(()),
    }
}

/// The path in a `sun_path`, which may be padded with NULs.
pub(crate) fn until_nul(path: &[u8]) -> &[u8] {
    path.iter().position(|byte| *byte == 0).map_or(path, |end| &path[..end])
}

/// Bytes of a program's making, safe to print: what is not printable text is escaped. Does not allocate.
struct Printable<'bytes>(&'bytes [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                if letter.is_control() {
                    write!(out, "{}", letter.escape_default())?;
                } else {
                    write!(out, "{letter}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}
