//! Which repository a git command works on.

use crate::files::{join, parent, Files, Kind};
use crate::limits::FOLDERS_MAX;

/// A repository as git finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The `.git` folder, or the worktree's own folder below it.
    pub folder: String,
    /// Where the shared parts are: the configuration, the remotes.
    pub common: String,
    /// The branch that HEAD names.
    pub branch: Option<String>,
    /// Where the files are; none for a bare repository.
    pub top: Option<String>,
}

/// Finds the repository for a working directory; `git_dir` is what `--git-dir` or `GIT_DIR` says, `ceilings` are folders above
/// which git does not look.
pub fn find(folder: &str, git_dir: Option<&str>, ceilings: &[String], files: &dyn Files) -> Option<Repository> {
    if let Some(path) = git_dir {
        let path = follow(&join(folder, path), files)?;
        return is_git_folder(&path, files).then(|| open(path, Some(folder.to_owned()), files));
    }
    let mut place = join(folder, "");
    for step in 0..FOLDERS_MAX {
        if step > 0 && ceilings.iter().any(|ceiling| ceiling.trim_end_matches('/') == place) {
            return None;
        }
        let inside = join(&place, ".git");
        match files.kind(&inside) {
            // Git stops with an error at a file that leads nowhere.
            Kind::File => {
                let path = follow(&inside, files).filter(|path| is_git_folder(path, files))?;
                return Some(open(path, Some(place), files));
            }
            Kind::Folder if is_git_folder(&inside, files) => return Some(open(inside, Some(place), files)),
            _ => {}
        }
        if is_git_folder(&place, files) {
            return Some(open(place, None, files));
        }
        if place == "/" {
            return None;
        }
        place = parent(&place).to_owned();
    }
    None
}

/// A file `gitdir: path` leads to a folder; a folder is itself.
fn follow(path: &str, files: &dyn Files) -> Option<String> {
    match files.kind(path) {
        Kind::Folder => Some(path.to_owned()),
        Kind::File => {
            let text = files.read(path)?;
            let target = text.strip_prefix("gitdir:")?.trim();
            Some(join(parent(path), target))
        }
        Kind::Missing => None,
    }
}

fn is_git_folder(path: &str, files: &dyn Files) -> bool {
    if files.kind(&format!("{path}/HEAD")) != Kind::File {
        return false;
    }
    let common = common_of(path, files);
    let has = |name: &str| files.kind(&format!("{common}/{name}")) == Kind::Folder;
    has("objects") && has("refs")
}

fn common_of(folder: &str, files: &dyn Files) -> String {
    match files.read(&format!("{folder}/commondir")) {
        Some(text) => join(folder, text.trim()),
        None => folder.to_owned(),
    }
}

fn open(folder: String, top: Option<String>, files: &dyn Files) -> Repository {
    let head = files.read(&format!("{folder}/HEAD")).unwrap_or_default();
    let branch = head.strip_prefix("ref:").map(str::trim).and_then(|name| name.strip_prefix("refs/heads/"));
    Repository { common: common_of(&folder, files), branch: branch.map(str::to_owned), top, folder }
}
