//! Waits of Rust's standard library. Each function waits for `ms` milliseconds and returns 0 if it timed out.

use std::sync::{mpsc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn is_short(begin: Instant, ms: i64) -> i32 {
    i32::from(begin.elapsed() < Duration::from_millis(ms as u64))
}

#[no_mangle]
pub extern "C" fn wait_park_timeout(ms: i64) -> i32 {
    let begin = Instant::now();
    thread::park_timeout(Duration::from_millis(ms as u64));
    is_short(begin, ms)
}

#[no_mangle]
pub extern "C" fn wait_recv_timeout(ms: i64) -> i32 {
    let (_send, receive) = mpsc::channel::<()>();
    let begin = Instant::now();
    let told = receive.recv_timeout(Duration::from_millis(ms as u64));
    i32::from(told != Err(mpsc::RecvTimeoutError::Timeout)) + is_short(begin, ms)
}

#[no_mangle]
pub extern "C" fn wait_condvar(ms: i64) -> i32 {
    let (mutex, condition) = (Mutex::new(()), Condvar::new());
    let begin = Instant::now();
    let guard = mutex.lock().unwrap();
    let (_guard, told) = condition.wait_timeout(guard, Duration::from_millis(ms as u64)).unwrap();
    i32::from(!told.timed_out()) + is_short(begin, ms)
}

#[no_mangle]
pub extern "C" fn wait_sleeping_thread(ms: i64) -> i32 {
    let begin = Instant::now();
    thread::spawn(move || thread::sleep(Duration::from_millis(ms as u64))).join().unwrap();
    is_short(begin, ms)
}
