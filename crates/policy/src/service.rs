//! Names of ports. A small table of its own, because a policy must read the same on every machine and `/etc/services`
//! differs between them.

/// Sorted by name; aliases are rows of their own.
const SERVICES: [(&str, u16); 27] = [
    ("amqp", 5672),
    ("amqps", 5671),
    ("dns", 53),
    ("domain", 53),
    ("ftp", 21),
    ("git", 9418),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap", 143),
    ("imaps", 993),
    ("kafka", 9092),
    ("ldap", 389),
    ("ldaps", 636),
    ("memcached", 11211),
    ("mongodb", 27017),
    ("mqtt", 1883),
    ("mysql", 3306),
    ("ntp", 123),
    ("pop3s", 995),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("redis", 6379),
    ("smtp", 25),
    ("ssh", 22),
    ("submission", 587),
    ("telnet", 23),
];

/// The port of a service, in any case.
pub fn port_of(name: &str) -> Option<u16> {
    SERVICES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, port)| *port)
}

/// All names that are known, for error texts.
pub fn names() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_unique() {
        assert!(SERVICES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(port_of("HTTPS"), Some(443));
        assert_eq!(port_of("gopher"), None);
    }
}
