//! Timers that are descriptors count virtual time: in a read, in a poll, in an epoll set, with intervals and deadlines.

use rustix::event::{epoll, poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::time::{
    clock_gettime, timerfd_create, timerfd_gettime, timerfd_settime, ClockId, Itimerspec, TimerfdClockId, TimerfdFlags,
    TimerfdTimerFlags,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

fn create(clock: TimerfdClockId, flags: TimerfdFlags) -> OwnedFd {
    timerfd_create(clock, flags).unwrap()
}

fn spec(value_s: i64, interval_s: i64) -> Itimerspec {
    let seconds = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    Itimerspec { it_value: seconds(value_s), it_interval: seconds(interval_s) }
}

fn arm(timer: &OwnedFd, value_s: i64, interval_s: i64) {
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &spec(value_s, interval_s)).unwrap();
}

/// How often it has expired; waits if it is patient.
fn read(timer: &OwnedFd) -> rustix::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::io::read(timer, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn is_ready(timer: &OwnedFd, limit: Option<Timespec>) -> bool {
    poll(&mut [PollFd::new(timer, PollFlags::IN)], limit.as_ref()).unwrap() == 1
}

const NOW: Option<Timespec> = Some(Timespec { tv_sec: 0, tv_nsec: 0 });

#[hermetic::test]
fn a_read_waits_for_it() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::empty());
    arm(&timer, 3600, 0);
    let begin = Instant::now();
    assert_eq!(read(&timer), Ok(1));
    assert!(begin.elapsed() >= HOUR && begin.elapsed() < HOUR + Duration::from_secs(1));
}

#[hermetic::test]
fn a_look_finds_what_is_due_and_nothing_else() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    arm(&timer, 10, 0);
    assert!(!is_ready(&timer, NOW));
    assert_eq!(read(&timer), Err(rustix::io::Errno::AGAIN));
    thread::sleep(Duration::from_secs(9));
    assert!(!is_ready(&timer, NOW));
    assert_eq!(timerfd_gettime(&timer).unwrap().it_value.tv_sec, 1);
    thread::sleep(Duration::from_secs(1));
    assert!(is_ready(&timer, NOW));
    assert_eq!(read(&timer), Ok(1));
    assert!(!is_ready(&timer, NOW));
}

#[hermetic::test]
fn intervals_are_counted() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    arm(&timer, 10, 5);
    thread::sleep(Duration::from_secs(21));
    assert_eq!(read(&timer), Ok(3));
    assert_eq!(read(&timer), Err(rustix::io::Errno::AGAIN));
    assert!(is_ready(&timer, None));
    assert_eq!(read(&timer), Ok(1));
    arm(&timer, 0, 0);
    thread::sleep(HOUR);
    assert!(!is_ready(&timer, NOW), "it is disarmed");
}

#[hermetic::test]
fn deadlines_are_on_the_virtual_clock() {
    let timer = create(TimerfdClockId::Realtime, TimerfdFlags::empty());
    let begin = SystemTime::now();
    let deadline = clock_gettime(ClockId::Realtime).tv_sec + 60;
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &spec(deadline, 0)).unwrap();
    assert_eq!(read(&timer), Ok(1));
    assert_eq!(begin.elapsed().unwrap(), Duration::from_secs(60));
    // One that has passed is due at once.
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &spec(1, 0)).unwrap();
    assert!(is_ready(&timer, NOW) || read(&timer) == Ok(1));
}

#[hermetic::test]
fn a_wait_keeps_its_own_limit() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    arm(&timer, 3600, 0);
    let begin = SystemTime::now();
    assert!(!is_ready(&timer, Some(Timespec { tv_sec: 60, tv_nsec: 0 })));
    assert_eq!(begin.elapsed().unwrap(), Duration::from_secs(60));
    let other = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    arm(&other, 7200, 0);
    assert!(is_ready(&timer, Some(Timespec { tv_sec: 86_400, tv_nsec: 0 })));
    assert_eq!(begin.elapsed().unwrap(), HOUR);
    // A timer that the wait is not for passes by.
    let third = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    assert!(!is_ready(&third, Some(Timespec { tv_sec: 86_400, tv_nsec: 0 })));
    assert_eq!(begin.elapsed().unwrap(), HOUR + Duration::from_secs(86_400));
}

#[hermetic::test]
fn a_set_waits_for_one_that_another_thread_arms() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, &timer, epoll::EventData::new_u64(7), epoll::EventFlags::IN).unwrap();
    let begin = SystemTime::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(10));
            arm(&timer, 20, 0);
        });
        let mut events = Vec::with_capacity(4);
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        assert_eq!(events[0].data.u64(), 7);
    });
    assert_eq!(begin.elapsed().unwrap(), Duration::from_secs(30));
}

#[test]
fn outside_it_counts_real_time() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::empty());
    timerfd_settime(
        &timer,
        TimerfdTimerFlags::empty(),
        &Itimerspec { it_value: Timespec { tv_sec: 0, tv_nsec: 2_000_000 }, it_interval: Timespec::default() },
    )
    .unwrap();
    assert_eq!(read(&timer), Ok(1));
}

#[test]
fn one_that_outlives_its_sandbox_goes_on_in_real_time() {
    let timer = create(TimerfdClockId::Monotonic, TimerfdFlags::empty());
    let sandbox = hermetic::Sandbox::builder().enter().unwrap();
    arm(&timer, 3600, 0);
    thread::sleep(HOUR - Duration::from_millis(5));
    drop(sandbox);
    let begin = Instant::now();
    assert_eq!(read(&timer), Ok(1));
    assert!(begin.elapsed() < Duration::from_secs(60));
}
