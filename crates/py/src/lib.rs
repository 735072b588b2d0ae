//! `hermetic._native`: conversions between CPython and the engine, and nothing that decides.
//!
//! | file | what it is for |
//! |---|---|
//! | `engine` | opens `libhermetic.so`, compares versions, attaches |
//! | `host`, `frame`, `code` | the host adapter: who is calling, how to interrupt a thread |
//! | `audit` | the language ring of the network |
//! | `floor`, `floor_audit` | the floor under all sandboxes: settings, environment, programs, files |
//! | `door` | the way in and out: the plain case, and what no error may cut short |
//! | `garbage_collection` | garbage collections, which happen by chance |
//! | `session` | entry, exit, suspend, resume; uses `generator`, `kept_generators`, `numpy`, `environment`, `attributes` |
//! | `steps` | counts what threads do, for `schedule="seeded"` |
//! | `journal_file` | journals on disk |
//! | `real` | the door to the real world |
//! | `pg` | throwaway PostgreSQL clusters |
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
mod floor;
mod floor_audit;
mod frame;
mod garbage_collection;
mod generator;
mod head;
mod host;
mod journal_file;
mod kept_generators;
mod numpy;
mod pg;
mod real;
mod session;
mod steps;
mod symbol;
mod text;

#[pymodule]
mod _native {
    #[pymodule_export]
    #[pymodule_export]
    use crate::console::run_console;
    #[pymodule_export]
    use crate::door::{current, Door, Handle};
    #[pymodule_export]
    use crate::findings::Finding;
    #[pymodule_export]
    use crate::floor::{
        floor_allow, floor_classes, floor_decide, floor_enter, floor_is_bare_run_refused, floor_leave,
        floor_note_process, floor_pending, floor_plan, floor_push, floor_settings, floor_take, floor_temp_trouble,
        floor_watch, floor_watch_now, set_home,
    };
    #[pymodule_export]
    use crate::host::{current_place, is_frame_direct};
    #[pymodule_export]
    use crate::journal_file::{finish_journal, journal_state, read_journal};
    #[pymodule_export]
    use crate::kept_generators::missing_generators;
    #[pymodule_export]
    use crate::pg::{
        pg_check_name, pg_check_socket_dir, pg_find_binaries, pg_generate_name, pg_sweep, pg_tables, PgCluster, PgError,
    };
    #[pymodule_export]
    use crate::real::{real_begin, real_clock, real_end, real_monotonic, real_sleep, real_time, real_urandom};
    #[pymodule_export]
    use crate::session::{describe, is_generator_direct, last_interrupt, problem, Plan, Session};
    #[pymodule_export]
    use crate::text::{check_entries, seed_for_test};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("active", crate::door::active(module.py()))?;
        module.add("__version__", env!("HERMETIC_VERSION"))
    }
}
