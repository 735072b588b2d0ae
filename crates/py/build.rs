//! Builds `libhermetic.so` (crate `hermetic-hook`) and the program `hermetic-pg` beside the binding library, so that one
//! `pip install` yields all.
//!
//! Cargo cannot yet make one package depend on the cdylib of another (artifact dependencies are unstable), so this script
//! runs a second cargo with a target directory of its own under `OUT_DIR`: no lock is shared with the outer build, and a
//! repeated build compiles only what changed. maturin packs the file from there (`tool.maturin.include` in pyproject.toml).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that they are made of, below `crates/`.
const PARTS: [&str; 8] = ["abi", "model", "policy", "journal", "engine", "sys", "hook", "pg"];
const OUTPUTS: [&str; 2] = ["libhermetic.so", "hermetic-pg"];

/// What the outer cargo, clippy or rustc wrapper says about *this* package, and must not reach the inner cargo.
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

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    watch(&workspace);
    println!("cargo:rustc-env=HERMETIC_VERSION={}", version(&workspace));

    let target = out.join("engine");
    let triple = variable("TARGET");
    let profile = if variable("PROFILE") == "release" { "release" } else { "dev" };
    build(&workspace, &target, &triple, profile);

    let folder = if profile == "release" { "release" } else { "debug" };
    for name in OUTPUTS {
        let built = target.join(&triple).join(folder).join(name);
        let packed = out.join(name);
        // A rename, not a copy over the old file: a process that has the old library mapped keeps its own copy.
        let fresh = out.join(format!("{name}.new"));
        fs::copy(&built, &fresh).unwrap_or_else(|error| panic!("cannot copy {}: {error}", built.display()));
        fs::rename(&fresh, &packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", packed.display()));
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this build through cargo"))
}

fn watch(workspace: &Path) {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["Cargo.toml", "VERSION"] {
        println!("cargo:rerun-if-changed={}", workspace.join(file).display());
    }
    for part in PARTS {
        println!("cargo:rerun-if-changed={}", workspace.join("crates").join(part).display());
    }
}

fn version(workspace: &Path) -> String {
    let path = workspace.join("VERSION");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    text.trim().to_owned()
}

fn build(workspace: &Path, target: &Path, triple: &str, profile: &str) {
    let mut cargo = Command::new(variable("CARGO"));
    let packages = ["-p", "hermetic-hook", "-p", "hermetic-pg", "--lib", "--bins"];
    cargo.arg("build").args(packages).args(["--profile", profile, "--target", triple]);
    cargo.arg("--target-dir").arg(target).arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    for name in OUTER_ONLY {
        cargo.env_remove(name);
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot run cargo for libhermetic.so: {error}"));
    assert!(status.success(), "building libhermetic.so (crate hermetic-hook) failed: {status}; its errors stand above");
}
