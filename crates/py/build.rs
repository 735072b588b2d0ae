//! Builds `libhermetic.so` (crate `hermetic-hook`) and the program `hermetic-pg` beside the binding library, so that one
//! `pip install` yields all. maturin packs them from `OUT_DIR` (`tool.maturin.include` in pyproject.toml).

use hermetic_artifact::{build, variable, workspace, Order, ENGINE};

fn main() {
    let path = workspace().join("VERSION");
    let version = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    println!("cargo:rustc-env=HERMETIC_VERSION={}", version.trim());
    build(&Order {
        parts: &[&ENGINE[..], &["pg"]].concat(),
        packages: &["hermetic-hook", "hermetic-pg"],
        files: &[("libhermetic_hook.so", "libhermetic.so"), ("hermetic-pg", "hermetic-pg")],
        is_release: variable("PROFILE") == "release",
        settings: &[],
    });
}
