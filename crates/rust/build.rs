//! Builds `libhermetic.so` (crate `hermetic-hook`), which the library carries inside: one dependency line brings everything.
//!
//! The engine is optimised whatever the program around it is, because its hooks run inside of every libc call of a test. Link-time
//! optimisation would double the time of the first build and is not felt.

use hermetic_artifact::{build, workspace, Order, ENGINE};

fn main() {
    let path = workspace().join("crates/hook/Cargo.toml");
    assert!(
        path.exists(),
        "{} is missing: hermetic is built from a checkout of its repository (a path or git dependency); a vendored copy lacks \
         the engine beside it",
        path.display()
    );
    build(&Order {
        parts: &ENGINE,
        packages: &["hermetic-hook"],
        files: &[("libhermetic_hook.so", "libhermetic.so")],
        is_release: true,
        settings: &[
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
        ],
    });
}
