"""Waits beside what is real: others' input, threads that compute, signals, deadlocks, and the order of those who wake.

That every kind of wait takes no time is in `test_wait_matrix.py`. Each program here runs in a process of its own.
"""

from __future__ import annotations

import pytest

SEEDS = 50
REPEATS = 3

HEADER = """
import asyncio, hashlib, json, os, queue, select, signal, socket, subprocess, sys, threading, time
import hermetic

real = hermetic.real.monotonic

def busy(seconds):
    # Computes for that long by the real clock, and waits for nothing.
    end = real() + seconds
    rounds = 0
    while real() < end:
        rounds += len(hashlib.sha256(b"x" * 5000).digest())
    return rounds
"""


@pytest.fixture
def told(program):
    """Runs a program after the common header, and returns the JSON that it prints at its end."""

    return lambda code, timeout=60: program(HEADER + code, timeout=timeout).told()


def test_a_server_that_computes_is_waited_for(told):
    """The client's limit of five virtual seconds does not come before the answer, however long it takes."""
    answer, virtual_s = told("""
def serve(server):
    peer, _ = server.accept()
    with peer:
        peer.recv(10)
        busy(0.4)
        peer.sendall(b"pong")

with hermetic.sandbox(seed=1):
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        with socket.create_connection(server.getsockname(), timeout=5) as client:
            client.sendall(b"ping")
            answer = client.recv(10).decode()
        thread.join()
    took = time.monotonic() - begin
print(json.dumps([answer, took]))
""")
    assert answer == "pong"
    assert virtual_s < 5


def test_a_server_that_naps_answers_after_virtual_time_only(told):
    answer, virtual_s, real_s = told("""
def serve(server):
    peer, _ = server.accept()
    with peer:
        peer.recv(10)
        time.sleep(600)
        peer.sendall(b"pong")

with hermetic.sandbox(seed=1):
    begin, real_begin = time.monotonic(), real()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        with socket.create_connection(server.getsockname(), timeout=3600) as client:
            client.sendall(b"ping")
            answer = client.recv(10).decode()
        thread.join()
    took = time.monotonic() - begin
print(json.dumps([answer, took, real() - real_begin]))
""")
    assert answer == "pong"
    assert 600 <= virtual_s < 601
    assert real_s < 5


@pytest.mark.parametrize("inherit", ["on", "off"])
def test_a_child_that_computes_is_waited_for(told, inherit):
    answer = told(f"""
CHILD = '''
import hashlib, os, resource
while resource.getrusage(resource.RUSAGE_SELF).ru_utime < 0.6:
    hashlib.sha256(b"x" * 50000).digest()
print("done")
'''

async def main():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, stdout=subprocess.PIPE)
    line = await asyncio.wait_for(child.stdout.readline(), 30)
    await child.wait()
    return line.decode().strip()

with hermetic.sandbox(seed=1, inherit={inherit!r}):
    answer = asyncio.run(main())
print(json.dumps(answer))
""")
    assert answer == "done"


def test_a_job_that_computes_for_two_seconds_is_waited_for(told):
    rounds, virtual_s = told("""
async def main():
    loop = asyncio.get_running_loop()
    return await asyncio.wait_for(loop.run_in_executor(None, busy, 2), 1)

with hermetic.sandbox(seed=1):
    begin = time.monotonic()
    rounds = asyncio.run(main())
    took = time.monotonic() - begin
print(json.dumps([rounds, took]))
""")
    assert rounds > 0
    assert virtual_s < 1


@pytest.mark.parametrize("step", ["pass", "time.sleep(0)"])
def test_a_loop_that_computes_until_a_sleeper_is_done_ends(told, step):
    moves, passed, took = told(
        f"""
begin = real()
with hermetic.sandbox(seed=1) as sb:
    done = []
    def sleeper():
        time.sleep(0.5)
        done.append(time.time())
    start = time.time()
    thread = threading.Thread(target=sleeper)
    thread.start()
    while not done:
        {step}
    thread.join()
print(json.dumps([[(move.at, move.to, move.why) for move in sb.clock.jumps], done[0] - start, real() - begin]))
"""
    )
    assert moves == [[0.0, 0.5, "deadline of thread 1, which came while another thread computed"]]
    assert passed == 0.5 and took < 50


def test_a_job_without_the_interpreters_lock_is_waited_for(told):
    """Hashing much at once runs without the lock; nobody may take the thread for asleep."""
    assert (
        told("""
BLOB = bytes(300_000_000)

async def main():
    loop = asyncio.get_running_loop()
    return await asyncio.wait_for(loop.run_in_executor(None, lambda: hashlib.sha256(BLOB).hexdigest()), 0.001)

with hermetic.sandbox(seed=1):
    digest = asyncio.run(main())
print(json.dumps(len(digest)))
""")
        == 64
    )


DEADLOCKS = {
    "Lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "Event": "threading.Event().wait()",
    "Queue": "queue.Queue().get()",
    "SimpleQueue": "queue.SimpleQueue().get()",
    "Condition": "condition = threading.Condition(); condition.acquire(); condition.wait()",
    "Barrier": "threading.Barrier(2).wait()",
    "asyncio": "asyncio.run(asyncio.Event().wait())",
    "select": "a, b = socket.socketpair(); select.select([a], [], [])",
    "two threads": """
        first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
        def other():
            with second:
                both.wait()
                first.acquire(timeout=-1)
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        with first:
            both.wait()
            second.acquire()
    """,
}


def test_pytest_fails_each_kind_of_deadlock_and_goes_on(project):
    tests = [
        f"def test_deadlock_{number}():\n{indented(code)}\n\ndef test_after_{number}():\n    time.sleep(3600)\n"
        for number, code in enumerate(DEADLOCKS.values())
    ]
    imports = "import asyncio, os, queue, select, socket, threading, time\n\n"
    project.write(test_stuck=imports + "\n".join(tests))
    ran = project.pytest("-q", "--hermetic-all", "--hermetic-seed=1")
    assert ran.outcomes() == {"failed": len(DEADLOCKS), "passed": len(DEADLOCKS)}, ran.text
    assert all(f"FAILED test_stuck.py::test_deadlock_{number} " in ran.text for number in range(len(DEADLOCKS))), (
        ran.text
    )
    assert ran.text.count("DeadlockError") >= len(DEADLOCKS), ran.text


def indented(code: str) -> str:
    lines = code.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join("    " + line[margin:] for line in lines)


def test_a_deadlock_is_told_within_a_second_with_every_threads_stack(told):
    text, real_s = told("""
def stuck_in_here(gate):
    gate.wait()

text, begin = "", real()
try:
    with hermetic.sandbox(seed=1):
        gate = threading.Event()
        thread = threading.Thread(target=stuck_in_here, args=(gate,), daemon=True)
        thread.start()
        thread.join()
except hermetic.DeadlockError as error:
    text = str(error)
print(json.dumps([text, real() - begin]))
""")
    assert "stuck_in_here" in text
    assert real_s < 2


@pytest.mark.parametrize("others", ["a pool's", "a reader's", "an accepting one's"])
def test_idle_threads_that_are_no_part_of_it_do_not_put_a_deadlock_off(told, others):
    """Nothing that they wait for can come from anywhere but from this process."""
    real_s = told(f"""
others = {others!r}
receive, send = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
lock = threading.Lock()
lock.acquire()
wait = {{"a pool's": lock.acquire, "a reader's": lambda: os.read(receive, 1), "an accepting one's": server.accept}}
idle = threading.Thread(target=wait[others], daemon=True)
idle.start()
begin = real()
try:
    with hermetic.sandbox(seed=1):
        threading.Event().wait()
except hermetic.DeadlockError:
    print(json.dumps(real() - begin))
sys.stdout.flush()
os._exit(0)
""")
    assert real_s < 3, "half a second on a machine that does nothing else"


def test_a_thread_that_naps_outside_may_still_end_a_wait(told):
    is_set, virtual_s = told("""
event = threading.Event()
timer = threading.Timer(1.5, event.set)
timer.start()
with hermetic.sandbox(seed=1):
    begin = time.monotonic()
    is_set = event.wait()
    took = time.monotonic() - begin
timer.join()
print(json.dumps([is_set, took]))
""")
    assert is_set
    assert virtual_s < 1


def test_ready_threads_wake_in_an_order_that_the_seed_draws(told):
    orders = told(f"""
def race(seed):
    woken = []
    with hermetic.sandbox(seed=seed):
        def nap(name):
            time.sleep(1)
            woken.append(name)
        threads = [threading.Thread(target=nap, args=(name,)) for name in "abcde"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return "".join(woken)

print(json.dumps([[race(seed) for _ in range({REPEATS})] for seed in range({SEEDS})]))
""")
    assert all(len(set(repeats)) == 1 for repeats in orders), orders
    assert len({repeats[0] for repeats in orders}) > 20


def test_a_signal_ends_a_wait_and_the_rest_is_waited(told):
    """PEP 475: the interpreter takes up an interrupted sleep again. In C the call says EINTR and what is left."""
    calls, python_s, error, left_s = told("""
import ctypes, errno

class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]

libc = ctypes.CDLL(None, use_errno=True)
calls = []
signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))

def after(seconds):
    main = threading.main_thread().ident
    def send():
        time.sleep(seconds)
        signal.pthread_kill(main, signal.SIGUSR1)
    thread = threading.Thread(target=send)
    thread.start()
    return thread

with hermetic.sandbox(seed=1):
    begin = time.monotonic()
    thread = after(100)
    time.sleep(1000)
    thread.join()
    python_s = time.monotonic() - begin
    thread = after(100)
    left = Timespec()
    ctypes.set_errno(0)
    result = libc.nanosleep(ctypes.byref(Timespec(1000, 0)), ctypes.byref(left))
    error = errno.errorcode.get(ctypes.get_errno()) if result else ""
    thread.join()
print(json.dumps([len(calls), python_s, error, left.seconds]))
""")
    assert calls == 2
    assert 1000 <= python_s < 1001
    assert error == "EINTR"
    assert 899 <= left_s <= 900


def test_a_wait_that_succeeds_keeps_errno(told):
    assert (
        told("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
with hermetic.sandbox(seed=1):
    ctypes.set_errno(77)
    libc.usleep(1000)
    kept = ctypes.get_errno()
print(json.dumps(kept))
""")
        == 77
    )


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_pytest_timeout_stops_a_test_that_computes_for_ever(project, method):
    pytest.importorskip("pytest_timeout")
    project.write(
        test_endless="""
        def test_endless():
            while True:
                pass
        """
    )
    ran = project.pytest("--hermetic-all", "--timeout=1", f"--timeout-method={method}", timeout=60)
    assert ran.code != 0
    assert "Timeout" in ran.text, ran.text


def test_a_c_function_that_naps_with_the_interpreters_lock_is_virtual(told):
    """Nobody else can run meanwhile, so time moves at once; and the other threads go on after it."""
    virtual_s, real_s, others = told("""
import ctypes
holding = ctypes.PyDLL(None)
others = []

def other():
    time.sleep(1)
    others.append(time.monotonic())

with hermetic.sandbox(seed=1):
    begin, real_begin = time.monotonic(), real()
    thread = threading.Thread(target=other)
    thread.start()
    holding.usleep(900_000_000)
    thread.join()
    took = time.monotonic() - begin
print(json.dumps([took, real() - real_begin, len(others)]))
""")
    assert 900 <= virtual_s < 902
    assert real_s < 2
    assert others == 1


def test_two_threads_that_alternate_ten_thousand_naps(told):
    total, real_s = told("""
def nap():
    for _ in range(5000):
        time.sleep(1)

with hermetic.sandbox(seed=1):
    begin, real_begin = time.monotonic(), real()
    thread = threading.Thread(target=nap)
    thread.start()
    nap()
    thread.join()
    total = time.monotonic() - begin
print(json.dumps([total, real() - real_begin]))
""")
    assert 5000 <= total < 5001
    assert real_s < 5, "a second on a machine that does nothing else"
