//! What the attribute adds to an empty test, in microseconds: the median of many, measured in the real world. For benches/.
//!
//! Everything that the attribute's code does is in it, in a thread of its own as a harness makes it, the start of that thread
//! left out. `cargo run --example empty_test [TESTS]`

use hermetic::__private::{run, Case};
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

static CASE: Case = Case {
    module: "empty_test::tests",
    name: "it_is_empty",
    package: Some("hermetic"),
    folder: None,
    expects_panic: false,
};

fn empty() {
    black_box(());
}

/// The time of one test with the attribute, less that of the same without.
fn measure() -> Duration {
    let begin = Instant::now();
    run(&CASE, |builder| builder, empty);
    let with = begin.elapsed();
    let begin = Instant::now();
    empty();
    with.saturating_sub(begin.elapsed())
}

fn main() {
    let tests: usize = std::env::args().nth(1).map_or(2000, |count| count.parse().expect("a number of tests"));
    let measured = (0..tests).map(|_| thread::spawn(measure).join().expect("it is empty"));
    let mut measured: Vec<Duration> = measured.collect();
    measured.sort_unstable();
    println!("{}", measured[tests / 2].as_nanos() as f64 / 1000.0);
}
