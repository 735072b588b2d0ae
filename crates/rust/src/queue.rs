//! Whose turn it is: sandboxed tests of one process run one after the other, first come, first served.
//!
//! Those who wait are real threads, whoever is inside: their waits end in real time.

use std::sync::{Condvar, Mutex, MutexGuard};

/// Numbers are handed out and served in order.
struct Queue {
    places: Mutex<Places>,
    served: Condvar,
}

struct Places {
    next: u64,
    serving: u64,
}

static QUEUE: Queue = Queue { places: Mutex::new(Places { next: 0, serving: 0 }), served: Condvar::new() };

/// The right to have a sandbox in this process. Gives it on when it is dropped, also by a panic.
#[derive(Debug)]
pub struct Turn(());

impl Queue {
    /// Nothing that can panic happens under the lock.
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Waits until everybody who came before is done.
pub fn wait_for_turn() -> Turn {
    let mut places = QUEUE.places();
    let own = places.next;
    places.next += 1;
    while places.serving != own {
        places = QUEUE.served.wait(places).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    Turn(())
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = QUEUE.places();
        places.serving += 1;
        if places.serving != places.next {
            QUEUE.served.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{mpsc, Arc, Barrier};
    use std::thread;

    /// One test for both, because the queue is the process's.
    #[test]
    fn turns_come_in_order_and_survive_a_panic() {
        let first = wait_for_turn();
        let (send, receive) = mpsc::channel();
        let waiting: Vec<_> = (0..4u64)
            .map(|number| {
                let (send, ready) = (send.clone(), Arc::new(Barrier::new(2)));
                let inside = ready.clone();
                let own = QUEUE.places().next;
                let thread = thread::spawn(move || {
                    inside.wait();
                    let _turn = wait_for_turn();
                    send.send(number).unwrap();
                    assert!(number != 1, "its turn goes on all the same");
                });
                ready.wait();
                while QUEUE.places().next == own {
                    thread::yield_now();
                }
                thread
            })
            .collect();
        drop(first);
        let failed = waiting.into_iter().map(thread::JoinHandle::join).filter(Result::is_err).count();
        assert_eq!(failed, 1);
        assert_eq!(receive.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
