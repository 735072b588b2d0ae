//! The seam to the file system: what the rules ask of it, and a body without a disk for tests.

use std::collections::BTreeMap;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Missing,
    File,
    Folder,
}

/// What the rules ask of a file system. Paths are absolute.
pub trait Files {
    /// The text of a file; none where there is none, or none that can be read.
    fn read(&self, path: &str) -> Option<String>;

    fn kind(&self, path: &str) -> Kind;

    /// The path without symbolic links; itself where it does not exist.
    fn resolve(&self, path: &str) -> String;
}

/// A file system in memory: paths and texts. Folders are those that hold something.
#[derive(Clone, Debug, Default)]
pub struct Imagined(pub BTreeMap<String, String>);

impl Files for Imagined {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn kind(&self, path: &str) -> Kind {
        if self.0.contains_key(path) {
            return Kind::File;
        }
        let folder = format!("{}/", path.trim_end_matches('/'));
        let is_folder = self.0.range(folder.clone()..).next().is_some_and(|(first, _)| first.starts_with(&folder));
        if is_folder {
            Kind::Folder
        } else {
            Kind::Missing
        }
    }

    fn resolve(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// Two paths put together; an absolute second one stands alone. `.` and `..` are resolved by text.
///
/// ```
/// use hermetic_floor::files::join;
/// assert_eq!(join("/a/b", "../c/./d"), "/a/c/d");
/// assert_eq!(join("/a", "/b/"), "/b");
/// ```
pub fn join(base: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The folder that a path lies in.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

/// Whether `path` is `folder` or lies below it, by text.
pub fn is_within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
