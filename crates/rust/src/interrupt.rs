//! The end of what nobody can end: a wait of all threads for each other, a loop that waits for a clock that stands still.
//!
//! Rust has no way to make a running thread fail, so the process says what happened and aborts, as Go's run time does. Under
//! nextest that fails the one test.

use crate::engine::{self, Engine};
use hermetic_abi::{finding, Text};
use std::backtrace::Backtrace;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

/// What runs in the sandbox, for the message.
static RUNNING: Mutex<Text> = Mutex::new(Text::new());
/// The first thread that gets here tells; others may come on its heels.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Notes what is about to run: its name, and how to run it again.
pub fn note_running(name: &str, again: &str) {
    let mut running = RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *running = Text::new();
    let _ = write!(running, "this ends {name}");
    if !again.is_empty() {
        let _ = write!(running, "; run it again with\n    {again}");
    }
}

/// Called by the engine, in the thread that is to fail. Allocates nothing before the message is out.
pub fn interrupt(kind: u32) {
    if !matches!(kind, finding::SPIN | finding::DEADLOCK) || IS_TOLD.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Ok(engine) = engine::api() {
        engine.real_begin();
        tell(engine);
    }
    std::process::abort();
}

fn tell(engine: Engine) {
    engine::write_error(b"\nhermetic: ");
    engine::write_error(engine.last_interrupt().as_str().as_bytes());
    // Held by nobody for long; where it is held now, the name is not worth a wait.
    if let Ok(running) = RUNNING.try_lock() {
        engine::write_error(b"\nhermetic: ");
        engine::write_error(running.as_str().as_bytes());
    }
    engine::write_error(b"\n");
    let trace = Backtrace::force_capture();
    engine::write_error(format!("the thread that was told stands here:\n{trace}\n").as_bytes());
}
