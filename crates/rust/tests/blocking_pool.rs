//! A wait of the wait matrix with a process of its own: smol keeps the threads of its pool for the life of the process, and an
//! idle one wakes twice a second, which is 7,200 times in each hour of all tests that come later.

use std::thread;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

#[hermetic::test]
fn unblock() {
    let (begin, really) = (Instant::now(), hermetic::real::monotonic());
    smol::block_on(smol::unblock(|| thread::sleep(HOUR)));
    assert!(begin.elapsed() >= HOUR - Duration::from_millis(1));
    assert!(hermetic::real::monotonic() - really < Duration::from_secs(1));
}
