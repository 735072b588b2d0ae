//! The checkout that the chores work on: where it is, which files it has.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a chore returns: nothing, or the text for the user.
pub type Outcome<Value = ()> = Result<Value, String>;

pub struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// The checkout that this program was built from.
    pub fn find() -> Outcome<Checkout> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().ok_or("xtask: has no parent folder")?;
        Ok(Checkout { root: root.to_path_buf() })
    }

    /// A file's text, by its path from the root.
    pub fn read(&self, path: &str) -> Outcome<String> {
        std::fs::read_to_string(self.root.join(path)).map_err(|error| format!("xtask: cannot read {path}: {error}"))
    }

    pub fn write(&self, path: &str, text: &str) -> Outcome {
        let full = self.root.join(path);
        let folder = full.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&full, text))
            .map_err(|error| format!("xtask: cannot write {path}: {error}"))
    }

    /// Paths from the root of all files that git knows or would add, sorted.
    pub fn files(&self) -> Outcome<Vec<String>> {
        let listed = self.output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut paths: Vec<String> = listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        paths.sort();
        paths.dedup();
        // A file that is deleted but not yet committed is still listed.
        paths.retain(|path| self.root.join(path).is_file());
        Ok(paths)
    }

    /// What a program prints when run at the root.
    pub fn output(&self, program: &str, arguments: &[&str]) -> Outcome<String> {
        let shown = || format!("{program} {}", arguments.join(" "));
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .map_err(|error| format!("xtask: cannot run `{}`: {error}", shown()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("xtask: `{}` failed: {}", shown(), said.trim_end()));
        }
        String::from_utf8(output.stdout).map_err(|_| format!("xtask: `{}` printed something else than UTF-8", shown()))
    }
}
