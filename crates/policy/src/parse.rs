//! From text to [`Entry`]: refuses whatever could never match, so that a slip shows at start and not as a refused connection.

use crate::entry::{Entry, Network, Scope};
use crate::error::{EntryError, Reason};
use crate::host;
use crate::limits::{LABEL_LEN_MAX, NAME_LEN_MAX, UNIX_PATH_LEN_MAX};
use crate::service;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::str::FromStr;

impl FromStr for Entry {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Entry, EntryError> {
        parse(text.trim()).map_err(|reason| EntryError::new(text, reason))
    }
}

fn parse(text: &str) -> Result<Entry, Reason> {
    if text.is_empty() {
        return Err(Reason::Empty);
    }
    if text.contains("://") {
        return Err(Reason::Url { instead: host_of_url(text) });
    }
    if let Some(socket) = unix_socket(text) {
        return Ok(Entry { scope: parse_unix(socket)?, port: None });
    }
    if text == "*" || text.starts_with("*:") {
        return Err(Reason::Everything);
    }
    let pieces = split(text)?;
    let port = pieces.port.map(parse_port).transpose()?.flatten();
    let scope = match pieces.prefix {
        Some(prefix) => parse_network(pieces.host, prefix, pieces.is_bracketed, text)?,
        None => parse_host(pieces.host, pieces.is_bracketed)?,
    };
    Ok(Entry { scope, port })
}

/// `host[/prefix][:port]` taken apart, the host without its brackets.
struct Pieces<'text> {
    host: &'text str,
    is_bracketed: bool,
    prefix: Option<&'text str>,
    port: Option<&'text str>,
}

fn split(text: &str) -> Result<Pieces<'_>, Reason> {
    let (host, is_bracketed, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']').ok_or(Reason::Brackets)?;
            (host, true, rest)
        }
        None => {
            let end = text.find('/').unwrap_or_else(|| end_of_host(text));
            (&text[..end], false, &text[end..])
        }
    };
    let (prefix, port) = match rest.strip_prefix('/') {
        Some(behind) => match behind.split_once(':') {
            Some((prefix, port)) => (Some(prefix), Some(port)),
            None => (Some(behind), None),
        },
        None => match rest.strip_prefix(':') {
            Some(port) => (None, Some(port)),
            None if rest.is_empty() => (None, None),
            None => return Err(Reason::Brackets),
        },
    };
    Ok(Pieces { host, is_bracketed, prefix, port })
}

/// Where the host ends in text without slash and brackets: at its only colon. With more than one it is IPv6 to the end.
fn end_of_host(text: &str) -> usize {
    match (text.find(':'), text.rfind(':')) {
        (Some(first), Some(last)) if first == last => first,
        _ => text.len(),
    }
}

/// `*` is any port, as is leaving it out.
fn parse_port(text: &str) -> Result<Option<u16>, Reason> {
    if text == "*" {
        return Ok(None);
    }
    let is_numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
    if !is_numeric {
        return match service::port_of(text) {
            Some(port) => Ok(Some(port)),
            None => Err(Reason::Service { name: text.into() }),
        };
    }
    match text.parse::<u16>() {
        Ok(port) if port > 0 && !text.starts_with('+') => Ok(Some(port)),
        _ => Err(Reason::Port { port: text.into() }),
    }
}

fn parse_host(text: &str, is_bracketed: bool) -> Result<Scope, Reason> {
    if is_bracketed {
        let address = host::parse_v6(text.as_bytes()).ok_or(Reason::Brackets)?;
        return Ok(Scope::Address(host::canonical(IpAddr::V6(address))));
    }
    if text.contains(':') {
        let address = host::parse_v6(text.as_bytes()).ok_or(Reason::Colons)?;
        return Ok(Scope::Address(host::canonical(IpAddr::V6(address))));
    }
    if let Some(domain) = text.strip_prefix("*.") {
        return Ok(Scope::Subdomains(parse_name(domain)?));
    }
    if text.contains('*') {
        return Err(Reason::Wildcard);
    }
    if is_numeric(text) {
        let address = parse_plain_v4(text).ok_or_else(|| Reason::Address { host: text.into() })?;
        return Ok(Scope::Address(host::canonical(IpAddr::V4(address))));
    }
    let name = parse_name(text)?;
    Ok(if host::is_the_machine(name.as_bytes()) { Scope::Machine } else { Scope::Name(name) })
}

/// A name whose last label begins with a digit-only or hexadecimal number is read as an address by every resolver.
fn is_numeric(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or("");
    let is_hex = last.len() > 1 && last.as_bytes()[0] == b'0' && matches!(last.as_bytes()[1], b'x' | b'X');
    !last.is_empty() && (is_hex || last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Entries take short forms such as `127.1`, but no lone number (a port, most likely), and no octal or hexadecimal part, which
/// programs do not agree about.
fn parse_plain_v4(text: &str) -> Option<Ipv4Addr> {
    let has_leading_zero = text.split('.').any(|part| part.len() > 1 && part.starts_with('0'));
    if has_leading_zero || !text.contains('.') {
        return None;
    }
    host::parse_v4(text.as_bytes())
}

fn parse_name(text: &str) -> Result<Box<str>, Reason> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.contains('*') {
        return Err(Reason::Wildcard);
    }
    if !name.is_ascii() {
        return Err(Reason::NotAscii { host: text.into() });
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_LEN_MAX
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A numeric last label makes the whole an address to every resolver, so no name can end in one.
    if name.len() > NAME_LEN_MAX || !name.split('.').all(is_label) || is_numeric(name) {
        return Err(Reason::Name { host: text.into() });
    }
    Ok(name.to_ascii_lowercase().into())
}

fn parse_network(text: &str, prefix: &str, is_bracketed: bool, entry: &str) -> Result<Scope, Reason> {
    let address = match host::parse_v6(text.as_bytes()) {
        Some(v6) => IpAddr::V6(v6),
        None if is_bracketed => return Err(Reason::Brackets),
        None if text.contains(':') => return Err(Reason::Colons),
        None if !is_numeric(text) => return Err(Reason::Url { instead: host_of_url(entry) }),
        None => IpAddr::V4(parse_plain_v4(text).ok_or_else(|| Reason::Address { host: text.into() })?),
    };
    let len_max = if address.is_ipv4() { 32 } else { 128 };
    let wrong = || Reason::Prefix { prefix: prefix.into(), len_max };
    let is_number = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
    let prefix_len = if is_number { prefix.parse().map_err(|_| wrong())? } else { return Err(wrong()) };
    let block = Network::around(address, prefix_len).ok_or_else(wrong)?;
    let single = Network::around(address, len_max).ok_or_else(wrong)?;
    if block.base() != single.base() {
        return Err(Reason::HostBits { network: format!("{}/{}", block.base(), block.prefix_len()) });
    }
    Ok(Scope::Network(block))
}

/// The part of an entry that names a unix socket, if it is one of those.
fn unix_socket(text: &str) -> Option<&str> {
    match text.split_at_checked("unix:".len()) {
        Some((scheme, socket)) if scheme.eq_ignore_ascii_case("unix:") => Some(socket),
        _ => text.starts_with(['/', '@']).then_some(text),
    }
}

fn parse_unix(text: &str) -> Result<Scope, Reason> {
    if text.len() > UNIX_PATH_LEN_MAX || text.contains(|letter: char| letter.is_control()) {
        return Err(Reason::UnixPath);
    }
    match text.strip_prefix('@') {
        Some("") => Err(Reason::UnixPath),
        Some(name) => Ok(Scope::Abstract(name.into())),
        None if !text.starts_with('/') => Err(Reason::UnixPath),
        None => Ok(normalised_path(text)),
    }
}

fn normalised_path(text: &str) -> Scope {
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let mut path = String::new();
    for part in &parts {
        path.push('/');
        path.push_str(part);
    }
    // A path that ends in a slash or a dot part can only be a folder.
    let is_folder = matches!(text.rsplit('/').next(), Some("" | "." | ".."));
    if is_folder {
        path.push('/');
        return Scope::Folder(path.into());
    }
    Scope::Path(path.into())
}

/// The entry that a URL, or a host with a path, most likely stands for.
fn host_of_url(text: &str) -> Option<String> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let entry: Entry = host.parse().ok()?;
    let port = entry.port.or_else(|| scheme.and_then(service::port_of));
    Some(format!("{}", Entry { port, ..entry }))
}
