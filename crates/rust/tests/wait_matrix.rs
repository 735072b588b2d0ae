//! The wait matrix: every kind of wait of an hour takes no real time, whoever makes it.

use hermetic::real;
use std::future::Future;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::{mpsc, Arc, Barrier, Condvar, LazyLock, Mutex, Once, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);
const REAL_MAX: Duration = Duration::from_millis(100);
/// A machine that does something else may be slow once.
const TRIES: u32 = 3;

/// Makes the wait, and says whether it took long enough; on a busy machine a few times.
fn is_an_hour_in_no_time(mut wait: impl FnMut()) {
    let mut took = Duration::MAX;
    for _ in 0..TRIES {
        let (virtually, really, wall) = (Instant::now(), real::monotonic(), SystemTime::now());
        wait();
        took = took.min(real::monotonic() - really);
        let (passed, walled) = (virtually.elapsed(), wall.elapsed().unwrap());
        assert!(passed >= HOUR && passed < HOUR + Duration::from_secs(2), "{passed:?}");
        // A wait whose length comes from two readings of `Instant` is shorter by what it ticked in between.
        let walled_min = HOUR - Duration::from_millis(1);
        assert!(walled >= walled_min && walled < HOUR + Duration::from_secs(2), "{walled:?}");
        if took < REAL_MAX {
            return;
        }
    }
    let jumps = hermetic::current().expect("inside").jumps();
    panic!("{took:?} of real time, {} jumps, the last {:?}", jumps.len(), jumps.last());
}

fn times_out<T>(result: std::io::Result<T>) {
    let kind = result.err().expect("nobody sends anything").kind();
    assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind:?}");
}

/// One test for each wait.
macro_rules! waits {
    ($($name:ident: $wait:expr;)*) => {
        $(
            #[hermetic::test]
            fn $name() {
                is_an_hour_in_no_time($wait);
            }
        )*
    };
}

waits! {
    sleep: || thread::sleep(HOUR);
    park_timeout: || thread::park_timeout(HOUR);
    recv_timeout: || {
        let (_send, receive) = mpsc::channel::<()>();
        assert_eq!(receive.recv_timeout(HOUR), Err(mpsc::RecvTimeoutError::Timeout));
    };
    recv_of_a_sleeping_sender: || {
        let (send, receive) = mpsc::channel();
        let sender = thread::spawn(move || {
            thread::sleep(HOUR);
            send.send(7).unwrap();
        });
        assert_eq!(receive.recv(), Ok(7));
        sender.join().unwrap();
    };
    send_to_a_sleeping_receiver: || {
        let (send, receive) = mpsc::sync_channel(0);
        let receiver = thread::spawn(move || {
            thread::sleep(HOUR);
            receive.recv()
        });
        send.send(7).unwrap();
        assert_eq!(receiver.join().unwrap(), Ok(7));
    };
    condvar_wait_timeout: || {
        let (mutex, condition) = (Mutex::new(()), Condvar::new());
        let (_guard, told) = condition.wait_timeout(mutex.lock().unwrap(), HOUR).unwrap();
        assert!(told.timed_out());
    };
    condvar_wait_timeout_while: || {
        let (mutex, condition) = (Mutex::new(true), Condvar::new());
        let (_guard, told) = condition.wait_timeout_while(mutex.lock().unwrap(), HOUR, |waits| *waits).unwrap();
        assert!(told.timed_out());
    };
    condvar_wait_for_a_sleeping_thread: || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let theirs = pair.clone();
        let teller = thread::spawn(move || {
            thread::sleep(HOUR);
            *theirs.0.lock().unwrap() = true;
            theirs.1.notify_one();
        });
        drop(pair.1.wait_while(pair.0.lock().unwrap(), |is_done| !*is_done).unwrap());
        teller.join().unwrap();
    };
    join: || thread::spawn(|| thread::sleep(HOUR)).join().unwrap();
    scope: || thread::scope(|scope| {
        scope.spawn(|| thread::sleep(HOUR));
    });
    barrier: || {
        let barrier = Arc::new(Barrier::new(2));
        let theirs = barrier.clone();
        let other = thread::spawn(move || {
            thread::sleep(HOUR);
            theirs.wait();
        });
        barrier.wait();
        other.join().unwrap();
    };
    mutex_of_a_sleeping_holder: || {
        let mutex = Arc::new(Mutex::new(()));
        let (send, is_held) = mpsc::channel();
        let theirs = mutex.clone();
        let holder = thread::spawn(move || {
            let _guard = theirs.lock().unwrap();
            send.send(()).unwrap();
            thread::sleep(HOUR);
        });
        is_held.recv().unwrap();
        drop(mutex.lock().unwrap());
        holder.join().unwrap();
    };
    rwlock_of_a_sleeping_writer: || {
        let lock = Arc::new(RwLock::new(()));
        let (send, is_held) = mpsc::channel();
        let theirs = lock.clone();
        let writer = thread::spawn(move || {
            let _guard = theirs.write().unwrap();
            send.send(()).unwrap();
            thread::sleep(HOUR);
        });
        is_held.recv().unwrap();
        drop(lock.read().unwrap());
        writer.join().unwrap();
    };
    once: || {
        let once = Arc::new(Once::new());
        let (send, is_begun) = mpsc::channel();
        let theirs = once.clone();
        let first = thread::spawn(move || theirs.call_once(|| {
            send.send(()).unwrap();
            thread::sleep(HOUR);
        }));
        is_begun.recv().unwrap();
        once.call_once(|| unreachable!("the other thread has begun"));
        first.join().unwrap();
    };
    lazy_lock: || {
        let lazy = LazyLock::new(|| thread::sleep(HOUR));
        LazyLock::force(&lazy);
    };
    tcp_read_timeout: || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_read_timeout(Some(HOUR)).unwrap();
        times_out(stream.read(&mut [0; 8]));
    };
    accept_of_a_sleeping_client: || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = thread::spawn(move || {
            thread::sleep(HOUR);
            TcpStream::connect(address).unwrap()
        });
        drop(listener.accept().unwrap());
        drop(client.join().unwrap());
    };
    udp_recv_timeout: || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(HOUR)).unwrap();
        times_out(socket.recv(&mut [0; 8]));
    };
    unix_read_timeout: || {
        let (mut stream, _other) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(HOUR)).unwrap();
        times_out(stream.read(&mut [0; 8]));
    };
    unix_datagram_timeout: || {
        let (socket, _other) = UnixDatagram::pair().unwrap();
        socket.set_read_timeout(Some(HOUR)).unwrap();
        times_out(socket.recv(&mut [0; 8]));
    };
    child_process: || assert!(Command::new("sleep").arg("3600").status().unwrap().success());
    child_output: || {
        let told = Command::new("sh").args(["-c", "sleep 1800; echo half; sleep 1800"]).output().unwrap();
        assert_eq!(told.stdout, b"half\n");
    };
}

/// An hour of a future on each of tokio's run times, and on the executor that comes with the attribute.
macro_rules! tokio_waits {
    ($($name:ident: $wait:expr;)*) => {
        mod tokio_current_thread {
            use super::*;
            $(
                #[hermetic::test]
                fn $name() {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    is_an_hour_in_no_time(|| runtime.block_on(async { $wait.await }));
                }
            )*
        }

        mod tokio_multi_thread {
            use super::*;
            $(
                #[hermetic::test]
                fn $name() {
                    let mut builder = tokio::runtime::Builder::new_multi_thread();
                    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
                    is_an_hour_in_no_time(|| runtime.block_on(async { tokio::spawn(async { $wait.await }).await.unwrap() }));
                }
            )*
        }
    };
}

tokio_waits! {
    sleep: tokio::time::sleep(HOUR);
    timeout: async {
        assert!(tokio::time::timeout(HOUR, std::future::pending::<()>()).await.is_err());
    };
    interval: async {
        let mut interval = tokio::time::interval(HOUR / 4);
        for _ in 0..5 {
            interval.tick().await;
        }
    };
    notified_by_a_sleeping_task: async {
        let notify = Arc::new(tokio::sync::Notify::new());
        let theirs = notify.clone();
        tokio::spawn(async move {
            tokio::time::sleep(HOUR).await;
            theirs.notify_one();
        });
        notify.notified().await;
    };
    spawn_blocking: async { tokio::task::spawn_blocking(|| thread::sleep(HOUR)).await.unwrap() };
    read_with_a_timeout: async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(tokio::time::timeout(HOUR, stream.readable()).await.is_err());
    };
    child_process: async {
        assert!(tokio::process::Command::new("sleep").arg("3600").status().await.unwrap().success());
    };
}

/// Counts down in quarters, so that a test sees more than one timer.
async fn quarters<F: Future>(quarter: impl Fn(Duration) -> F) {
    for _ in 0..4 {
        quarter(HOUR / 4).await;
    }
}

#[hermetic::test]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_attribute() {
    let begin = Instant::now();
    quarters(tokio::time::sleep).await;
    assert!(begin.elapsed() >= HOUR);
}

#[hermetic::test]
async fn smol_timer() {
    let (begin, really) = (Instant::now(), real::monotonic());
    quarters(smol::Timer::after).await;
    assert!(begin.elapsed() >= HOUR && real::monotonic() - really < Duration::from_secs(2));
}

mod smol_waits {
    use super::*;

    waits! {
        timer: || {
            smol::block_on(smol::Timer::after(HOUR));
        };
        race: || smol::block_on(smol::future::or(std::future::pending(), async {
            smol::Timer::after(HOUR).await;
        }));
        task: || smol::block_on(smol::spawn(async {
            smol::Timer::after(HOUR).await;
        }));
        accept_with_a_timeout: || smol::block_on(async {
            let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let accepted = async { Some(listener.accept().await) };
            let late = async {
                smol::Timer::after(HOUR).await;
                None
            };
            assert!(smol::future::or(accepted, late).await.is_none());
        });
    }
}
