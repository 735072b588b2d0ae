//! As whom the server runs. PostgreSQL refuses root, so root has to become somebody else.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Users that root runs servers as, in this order.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// The user that root appears as in a user namespace.
const MAPPED_ID: u32 = 1000;

/// As whom the server's programs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// As the caller.
    Caller,
    /// As an unprivileged user, who then owns the cluster's directories.
    User { name: String, user: u32, group: u32 },
    /// In a user namespace, where root's number is another. For places that no other user can reach.
    Mapped,
}

impl Identity {
    /// Decides for a caller with this effective user and directories that the server must reach.
    ///
    /// # Errors
    /// [`Kind::Unavailable`] for root where neither a user can reach the directories nor a namespace can be made.
    pub fn choose(effective_user: u32, parents: &[&Path]) -> Result<Identity> {
        if effective_user != 0 {
            return Ok(Identity::Caller);
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = USERS.iter().find_map(|name| find_user(&users, name));
        if let Some((name, user, group)) = found {
            if parents.iter().all(|parent| can_reach(parent, user, group)) {
                return Ok(Identity::User { name, user, group });
            }
        }
        if Path::new("/proc/self/ns/user").exists() {
            return Ok(Identity::Mapped);
        }
        let places: Vec<_> = parents.iter().map(|parent| parent.display().to_string()).collect();
        Err(Error::new(
            Kind::Unavailable,
            format!(
                "PostgreSQL does not run as root, and none of the users {} can reach {}: run as an unprivileged user, \
                 or give parents that all users can reach, such as /dev/shm",
                USERS.join(", "),
                places.join(" and ")
            ),
        ))
    }

    /// Who owns the cluster's files, where that is not the caller.
    pub fn owner(&self) -> Option<(u32, u32)> {
        match self {
            Identity::User { user, group, .. } => Some((*user, *group)),
            _ => None,
        }
    }

    /// One word or sentence for people; empty where there is nothing to say.
    pub fn note(&self) -> String {
        match self {
            Identity::Caller => String::new(),
            Identity::User { name, .. } => format!("started by root: the server runs as the user {name}"),
            Identity::Mapped => format!("started by root: the server runs in a user namespace, as user {MAPPED_ID}"),
        }
    }

    /// The identity as a field of a message.
    pub(crate) fn encode(&self) -> String {
        match self {
            Identity::Caller => "caller".to_owned(),
            Identity::User { name, user, group } => format!("user:{user}:{group}:{name}"),
            Identity::Mapped => "mapped".to_owned(),
        }
    }

    pub(crate) fn decode(text: &str) -> Option<Identity> {
        match text {
            "caller" => return Some(Identity::Caller),
            "mapped" => return Some(Identity::Mapped),
            _ => {}
        }
        let mut parts = text.strip_prefix("user:")?.splitn(3, ':');
        let (user, group) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Identity::User { name: parts.next()?.to_owned(), user, group })
    }
}

/// The number that an identity in a namespace has inside: root's becomes another, others keep theirs.
pub(crate) fn mapped_id(outside: u32) -> u32 {
    if outside == 0 {
        MAPPED_ID
    } else {
        outside
    }
}

fn find_user(users: &str, name: &str) -> Option<(String, u32, u32)> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        let (_, user, group) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (is_it && user != 0).then(|| (name.to_owned(), user, group))
    })
}

/// Whether a user may pass through every directory of a path.
fn can_reach(path: &Path, user: u32, group: u32) -> bool {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    path.ancestors().all(|part| {
        let Ok(data) = part.metadata() else { return false };
        let shift = if data.uid() == user {
            6
        } else if data.gid() == group {
            3
        } else {
            0
        };
        data.mode() >> shift & 1 == 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "root:x:0:0::/:\nmypostgres:x:7:7::/:\npostgres:x:101:104:,,,:/var:/bin/bash\n";
        assert_eq!(find_user(users, "postgres"), Some(("postgres".to_owned(), 101, 104)));
        assert_eq!(find_user(users, "root"), None);
        assert_eq!(find_user(users, "nobody"), None);
    }

    #[test]
    fn identities_travel() {
        let user = Identity::User { name: "a:b".to_owned(), user: 5, group: 6 };
        for identity in [Identity::Caller, Identity::Mapped, user] {
            assert_eq!(Identity::decode(&identity.encode()), Some(identity));
        }
        assert_eq!(Identity::decode("user:x:1:y"), None);
    }

    #[test]
    fn who_is_not_root_stays_who_they_are() {
        assert_eq!(Identity::choose(1000, &[Path::new("/nonexistent")]), Ok(Identity::Caller));
        assert!(can_reach(Path::new("/tmp"), 65534, 65534));
        assert!(!can_reach(Path::new("/nonexistent/x"), 65534, 65534));
    }
}
