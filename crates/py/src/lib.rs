//! `hermetic._native`: conversions between CPython and the engine, and nothing that decides.
//!
//! | file | what it is for |
//! |---|---|
//! | `engine` | opens `libhermetic.so`, compares versions, attaches |
//! | `host`, `frame`, `code` | the host adapter: who is calling, how to interrupt a thread |
//! | `audit` | the language ring of the network |
//! | `door` | the way out, which no error may cut short |
//! | `session` | entry, exit, suspend, resume; uses `generator`, `numpy`, `environment`, `attributes` |
//! | `journal_file` | journals on disk |
//! | `real` | the door to the real world |
//! | `console` | the command `hermetic` |

use pyo3::prelude::*;

mod attributes;
mod audit;
mod code;
mod console;
mod door;
mod engine;
mod environment;
mod errors;
mod findings;
mod frame;
mod generator;
mod host;
mod journal_file;
mod numpy;
mod real;
mod session;
mod symbol;
mod text;

#[pymodule]
mod _native {
    #[pymodule_export]
    #[pymodule_export]
    use crate::console::run_console;
    #[pymodule_export]
    use crate::door::Door;
    #[pymodule_export]
    use crate::findings::Finding;
    #[pymodule_export]
    use crate::host::{current_place, is_frame_direct};
    #[pymodule_export]
    use crate::journal_file::{finish_journal, read_journal};
    #[pymodule_export]
    use crate::real::{real_begin, real_clock, real_end, real_sleep, real_urandom};
    #[pymodule_export]
    use crate::session::{describe, is_generator_direct, last_interrupt, problem, Plan, Session};
    #[pymodule_export]
    use crate::text::{check_entries, seed_for_test};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("HERMETIC_VERSION"))
    }
}
