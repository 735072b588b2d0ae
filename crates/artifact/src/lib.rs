//! Builds the workspace's own libraries and programs for a build script of another of its packages.
//!
//! Cargo cannot yet make one package depend on the cdylib or the program of another (artifact dependencies are unstable), so a
//! second cargo runs with a target directory of its own under `OUT_DIR`: no lock is shared with the outer build, and a repeated
//! build compiles only what changed. What is done with the files is left to the build script.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that the engine is made of, below `crates/`.
pub const ENGINE: [&str; 7] = ["abi", "model", "policy", "journal", "engine", "sys", "hook"];

/// What is built, and how.
pub struct Order<'a> {
    /// The crates below `crates/` whose change asks for a new build.
    pub parts: &'a [&'a str],
    pub packages: &'a [&'a str],
    /// Each file's name as cargo makes it, and as it is to lie in `OUT_DIR`.
    pub files: &'a [(&'a str, &'a str)],
    pub is_release: bool,
    /// Settings of the profile that differ, as environment variables of the inner cargo.
    pub settings: &'a [(&'a str, &'a str)],
}

/// What the outer cargo, clippy or rustc wrapper says about the outer package, and must not reach the inner cargo.
const OUTER_ONLY: [&str; 8] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "MAKEFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
];

/// The checkout that the calling build script's package lies in, two folders up.
///
/// # Panics
/// Outside of cargo, as everything here: a build script has no other way to fail.
pub fn workspace() -> PathBuf {
    PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds, and leaves the files in `OUT_DIR`.
///
/// # Panics
/// Where the inner build fails; its errors stand above.
pub fn build(order: &Order<'_>) {
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = workspace();
    watch(&workspace, order.parts);
    let (target, triple) = (out.join("engine"), variable("TARGET"));
    run(order, &workspace, &target, &triple);
    let folder = target.join(&triple).join(if order.is_release { "release" } else { "debug" });
    for (made, name) in order.files {
        place(&folder.join(made), &out.join(name));
    }
}

/// A variable that cargo sets for build scripts.
///
/// # Panics
/// Where it is not set.
pub fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this build through cargo"))
}

fn watch(workspace: &Path, parts: &[&str]) {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["Cargo.toml", "VERSION"] {
        println!("cargo:rerun-if-changed={}", workspace.join(file).display());
    }
    for part in parts {
        println!("cargo:rerun-if-changed={}", workspace.join("crates").join(part).display());
    }
}

fn run(order: &Order<'_>, workspace: &Path, target: &Path, triple: &str) {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--lib", "--bins", "--target", triple]);
    cargo.args(["--profile", if order.is_release { "release" } else { "dev" }]);
    for package in order.packages {
        cargo.args(["--package", package]);
    }
    cargo.arg("--target-dir").arg(target).arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    for name in OUTER_ONLY {
        cargo.env_remove(name);
    }
    cargo.envs(order.settings.iter().copied());
    let what = order.packages.join(" and ");
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot run cargo for {what}: {error}"));
    assert!(status.success(), "building {what} failed: {status}; its errors stand above");
}

/// A rename, not a copy over the old file: a process that has the old library mapped keeps its own copy.
fn place(built: &Path, packed: &Path) {
    let fresh = packed.with_extension("new");
    fs::copy(built, &fresh).unwrap_or_else(|error| panic!("cannot copy {}: {error}", built.display()));
    fs::rename(&fresh, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", packed.display()));
}
