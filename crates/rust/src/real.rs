//! The door to the real world: answers that no sandbox changes.

use crate::engine;
use crate::error::Error;
use hermetic_abi::clock;
use std::time::{Duration, SystemTime};

/// The real wall clock.
pub fn now() -> SystemTime {
    match engine::api() {
        Ok(engine) => SystemTime::UNIX_EPOCH + Duration::from_nanos(engine.real_clock(clock::WALL) as u64),
        // Without an engine nothing is virtual.
        Err(_) => SystemTime::now(),
    }
}

/// Real time since some moment in the past, for measuring.
pub fn monotonic() -> Duration {
    match engine::api() {
        Ok(engine) => Duration::from_nanos(engine.real_clock(clock::MONOTONIC) as u64),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
    }
}

/// Sleeps in real time. The virtual clocks stand still meanwhile.
pub fn sleep(duration: Duration) {
    match engine::api() {
        Ok(engine) => engine.real_sleep(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)),
        Err(_) => std::thread::sleep(duration),
    }
}

/// Fills the buffer with real random bytes.
pub fn fill(buffer: &mut [u8]) -> Result<(), Error> {
    match engine::api() {
        Ok(engine) if engine.real_entropy(buffer) => Ok(()),
        Ok(_) => Err(Error::Engine("the system gave no entropy".to_owned())),
        Err(reason) => Err(Error::Engine(reason.to_owned())),
    }
}

/// Everything that `work` does in this thread is real: clocks, waits, randomness, network.
///
/// ```
/// # let sandbox = hermetic::Sandbox::builder().enter()?;
/// let virtual_now = std::time::SystemTime::now();
/// assert!(hermetic::real::scope(std::time::SystemTime::now) > virtual_now);
/// # Ok::<(), hermetic::Error>(())
/// ```
pub fn scope<R>(work: impl FnOnce() -> R) -> R {
    struct Section(Option<engine::Engine>);
    impl Drop for Section {
        fn drop(&mut self) {
            if let Some(engine) = &self.0 {
                engine.real_end();
            }
        }
    }
    let section = Section(engine::api().ok());
    if let Some(engine) = &section.0 {
        engine.real_begin();
    }
    work()
}
