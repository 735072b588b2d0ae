//! Where temporary files may be: not inside a project, and not inside a work tree of git.

use crate::files::{is_within, parent, Files, Kind};
use crate::limits::FOLDERS_MAX;

/// Why a folder is no place for temporary files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It lies in the project that pytest runs.
    Project(String),
    /// It lies in a work tree of git.
    WorkTree(String),
}

/// The nearest work tree that holds a path: the folder with a `.git` in it.
pub fn work_tree(path: &str, files: &dyn Files) -> Option<String> {
    let mut folder = path;
    for _ in 0..FOLDERS_MAX {
        let inside = if folder == "/" { "/.git".to_owned() } else { format!("{folder}/.git") };
        if is_repository(&inside, files) {
            return Some(folder.to_owned());
        }
        if folder == "/" {
            return None;
        }
        folder = parent(folder);
    }
    None
}

/// A `.git` that git would follow: a file that points somewhere, or a folder with a HEAD. An empty folder of that name is none.
fn is_repository(path: &str, files: &dyn Files) -> bool {
    match files.kind(path) {
        Kind::File => files.read(path).is_some_and(|text| text.starts_with("gitdir:")),
        Kind::Folder => files.kind(&format!("{path}/HEAD")) != Kind::Missing,
        Kind::Missing => false,
    }
}

/// Judges a folder for temporary files of a run whose project is `project`. Both are absolute.
///
/// ```
/// use hermetic_floor::files::Imagined;
/// use hermetic_floor::place::{judge, Trouble};
/// let files = Imagined([("/src/app/.git/HEAD".to_owned(), String::new())].into());
/// assert_eq!(judge("/tmp/x", "/src/app", &files), None);
/// assert_eq!(judge("/src/app/build/tmp", "/src/app/tests", &files), Some(Trouble::WorkTree("/src/app".to_owned())));
/// ```
pub fn judge(folder: &str, project: &str, files: &dyn Files) -> Option<Trouble> {
    let (folder, project) = (files.resolve(folder), files.resolve(project));
    if is_within(&folder, &project) {
        return Some(Trouble::Project(project));
    }
    work_tree(&folder, files).map(Trouble::WorkTree)
}
