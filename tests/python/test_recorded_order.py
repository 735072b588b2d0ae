"""The order of threads, recorded and replayed: who woke whom, whose time was up, and who went on next.

Each program records a race that real time decides, on a machine that is kept busy, and replays it: every replay ends as
the recording did, and takes none of its time. What is recorded of a single wait is in `test_wait_matrix.py`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

REPLAYS = 20

HEADER = f"""
import asyncio, json, os, queue, select, socket, sys, threading, time, warnings
import hermetic

warnings.simplefilter("ignore")
real = hermetic.real.monotonic
REPLAYS = {REPLAYS}

def timed(act, **options):
    with hermetic.sandbox(**options):
        begin = real()
        outcome = act()
        return outcome, real() - begin

def race(act):
    # The recorded outcome, the different ones of the replays, and the real seconds of both.
    recorded, took_s = timed(act, record="x.journal")
    replays = [timed(act, replay="x.journal") for _ in range(REPLAYS)]
    outcomes = [outcome for outcome, _ in replays if outcome != recorded]
    return dict(recorded=recorded, others=outcomes, recorded_s=took_s, replay_s=min(s for _, s in replays))
"""


@pytest.fixture
def busy_machine():
    """As many programs that compute for ever as keep the machine busy beside the test."""
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for one in load:
        one.kill()
        one.wait()


@pytest.fixture
def told(program):
    """Runs a program after the common header, and returns the JSON that it prints at its end."""

    return lambda code, timeout=120: program(HEADER + code, timeout=timeout).told()


RACES = {
    "an event that may come too late": """
        def act():
            rang, seen = threading.Event(), []
            def ring():
                time.sleep(0.02)
                rang.set()
                seen.append("rang")
            thread = threading.Thread(target=ring)
            thread.start()
            seen.append(rang.wait(0.02))
            thread.join()
            return seen
    """,
    "consumers of a queue": """
        def act():
            jobs, taken = queue.Queue(), []
            def consume(name):
                while (job := jobs.get()) is not None:
                    taken.append((name, job))
                    time.sleep(0.0001 * job)
            threads = [threading.Thread(target=consume, args=(name,)) for name in "abc"]
            for thread in threads:
                thread.start()
            for job in range(12):
                jobs.put(job)
                if job % 3 == 0:
                    time.sleep(0.001)
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                thread.join()
            return taken
    """,
    "a lost update": """
        def act():
            total = 0
            def add():
                nonlocal total
                for _ in range(15):
                    before = total
                    time.sleep(0.0001)
                    total = before + 1
            threads = [threading.Thread(target=add) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return total
    """,
    "jobs of an event loop": """
        def act():
            seen = []
            def job(number):
                time.sleep(0.001 * number)
                seen.append(number)
            async def main():
                loop = asyncio.get_running_loop()
                jobs = [loop.run_in_executor(None, job, number) for number in range(5)]
                done, _ = await asyncio.wait(jobs, timeout=0.003)
                seen.append(f"{len(done)} in time")
                await asyncio.gather(*jobs)
            asyncio.run(main())
            return seen
    """,
    "a condition and its impatient waiters": """
        def act():
            ready, served, stock = threading.Condition(), [], []
            def take(name, patience):
                with ready:
                    if ready.wait_for(lambda: stock, patience):
                        served.append((name, stock.pop()))
                    else:
                        served.append((name, "gave up"))
            threads = [threading.Thread(target=take, args=(name, 0.002 * (name + 1))) for name in range(4)]
            for thread in threads:
                thread.start()
            for item in range(3):
                time.sleep(0.002)
                with ready:
                    stock.append(item)
                    ready.notify(2)
            for thread in threads:
                thread.join()
            return served
    """,
    "a server and clients that give up": """
        def act():
            seen = []
            def serve(server):
                for _ in range(3):
                    peer, _ = server.accept()
                    with peer:
                        peer.recv(10)
                        time.sleep(0.002)
                        try:
                            peer.sendall(b"pong")
                        except OSError:
                            seen.append("gone")
            def ask(name, port):
                with socket.create_connection(("127.0.0.1", port)) as client:
                    client.settimeout(0.004)
                    client.sendall(b"ping")
                    try:
                        seen.append((name, client.recv(10).decode()))
                    except TimeoutError:
                        seen.append((name, "gave up"))
            with socket.create_server(("127.0.0.1", 0)) as server:
                threads = [threading.Thread(target=serve, args=(server,))]
                threads += [threading.Thread(target=ask, args=(name, server.getsockname()[1])) for name in "abc"]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            return seen
    """,
    "a loop that only looks": """
        def act():
            here, there = socket.socketpair()
            def send():
                time.sleep(0.002)
                there.send(b"x")
            with here, there:
                thread = threading.Thread(target=send)
                thread.start()
                looks = 0
                while not select.select([here], [], [], 0)[0]:
                    looks += 1
                thread.join()
            return looks
    """,
    "more descriptors than a journal tells of": """
        def act():
            pairs = [socket.socketpair() for _ in range(70)]
            numbers = {here.fileno(): number for number, (here, _) in enumerate(pairs)}
            poll, seen = select.poll(), []
            for descriptor in numbers:
                poll.register(descriptor, select.POLLIN)
            def send():
                for number in (69, 3, 40):
                    time.sleep(0.001)
                    pairs[number][1].send(b"x")
            thread = threading.Thread(target=send)
            thread.start()
            while len(seen) < 3:
                for descriptor, _ in poll.poll(1000):
                    seen.append(numbers[descriptor])
                    pairs[seen[-1]][0].recv(1)
            thread.join()
            for pair in pairs:
                for one in pair:
                    one.close()
            return seen
    """,
    "a look at what another takes": """
        def act():
            here, there = socket.socketpair()
            taken = []
            def take():
                for _ in range(5):
                    taken.append(here.recv(1).decode())
            with here, there:
                thread = threading.Thread(target=take)
                thread.start()
                for letter in "abcde":
                    time.sleep(0.001)
                    there.send(letter.encode())
                    while select.select([here], [], [], 0.001)[0]:
                        taken.append("seen")
                thread.join()
            return taken
    """,
}


def unindented(code: str) -> str:
    lines = code.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize("race", RACES)
@pytest.mark.usefixtures("busy_machine")
def test_a_race_replays_to_its_recorded_end(told, race):
    row = told(unindented(RACES[race]) + "\nprint(json.dumps(race(act)))\n")
    assert row["others"] == [], row


@pytest.mark.parametrize(("delay_s", "patience_s", "is_set"), [(0.05, 0.3, True), (0.3, 0.05, False)])
def test_who_was_first_is_first_again_and_nobody_waits(told, delay_s, patience_s, is_set):
    """A wait that timed out times out although its event would come at once; one that was woken does not time out."""
    row = told(f"""
def act():
    rang = threading.Event()
    def ring():
        time.sleep({delay_s})
        rang.set()
    thread = threading.Thread(target=ring)
    thread.start()
    told = rang.wait({patience_s})
    thread.join()
    return told
print(json.dumps(race(act)))
""")
    assert (row["recorded"], row["others"]) == (is_set, [])
    assert row["recorded_s"] >= delay_s
    assert row["replay_s"] < min(delay_s, patience_s), row


def test_a_wait_that_timed_out_does_so_although_its_input_comes_earlier(told):
    """What a child writes comes when the child likes, which takes part in no replay."""
    row = told("""
def act():
    here, there = socket.socketpair()
    with here, there:
        child = os.fork()
        if child == 0:
            time.sleep(float(os.environ["DELAY"]))
            there.send(b"x")
            os._exit(0)
        here.settimeout(0.2)
        try:
            told = here.recv(1).decode()
        except TimeoutError:
            told = "gave up"
        os.waitpid(child, 0)
    return told

os.environ["DELAY"] = "0.4"
recorded, _ = timed(act, record="x.journal")
os.environ["DELAY"] = "0.05"
replayed = [timed(act, replay="x.journal")[0] for _ in range(5)]
print(json.dumps([recorded, replayed]))
""")
    assert row == ["gave up", ["gave up"] * 5]


# Code before and after, its step before and after, and what the error says.
CHANGES = {
    "a wait too many": (
        "STEP",
        ["gate.acquire(timeout=0.001)", "gate.acquire(timeout=0.001); gate.acquire()"],
        ["the test waited for a semaphore without a limit", "the journal has next: no more waits of this thread"],
    ),
    "a wait of another kind": (
        "STEP",
        ["time.sleep(0.001)", "gate.acquire(timeout=0.001)"],
        ["the test waited for a semaphore for up to 0.00", "the journal has next: a wait for a time for up to 0.00"],
    ),
    "a wait without its limit": (
        "STEP",
        ["gate.acquire(timeout=0.001)", "gate.acquire()"],
        [
            "the test waited for a semaphore without a limit",
            "the journal has next: a wait for a semaphore",
            "timed out",
        ],
    ),
    "a thread too many": (
        "STEP",
        ["pass", "threading.Thread(target=print).start()"],
        ["the test started a thread", "the journal has no such thread"],
    ),
    "waits too few, of a thread and of the one that joins it": (
        "other = threading.Thread(target=lambda: STEP); other.start(); gate.release(); other.join()",
        ["gate.acquire()", "None"],
        ["2 recorded waits were not made; the first: a wait for a semaphore without a limit", "thread 1, ended by"],
    ),
    "nobody wakes": (
        "thread = threading.Timer(0.001, lambda: STEP); thread.start(); gate.acquire(); thread.join()",
        ["gate.release()", "None"],
        ["every thread of the test waits", "the journal has next: a wait for a semaphore", "ended by thread 1"],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_replay_that_waits_otherwise_says_so_with_both_sides(told, change):
    code, steps, words = CHANGES[change]
    text = told(f"""
def made(step):
    names = dict(globals())
    code = "def act():\\n    gate = threading.Lock(); gate.acquire(); " + {code!r}.replace("STEP", step)
    exec(compile(code, "changed.py", "exec"), names)
    return names["act"]
timed(made({steps[0]!r}), record="x.journal")
try:
    timed(made({steps[1]!r}), replay="x.journal")
    text = ""
except hermetic.ReplayMismatch as error:
    text = str(error)
print(json.dumps(text))
""")
    assert all(word in text for word in words), text


def test_a_loop_that_computes_until_a_sleeper_is_done_ends_when_replayed_too(told):
    row = told("""
def act():
    done = []
    thread = threading.Thread(target=lambda: (time.sleep(0.01), done.append(1)))
    thread.start()
    while not done:
        pass
    thread.join()
    return done
recorded, _ = timed(act, record="x.journal")
print(json.dumps([recorded, timed(act, replay="x.journal")[0]]))
""")
    assert row == [[1], [1]]


def test_locks_of_multiprocessing_replay_without_the_tests_that_made_some_before(project):
    """Their names come from a generator that the process makes once, of random bytes."""
    project.write(
        test_locks="""
        import multiprocessing, pytest

        @pytest.mark.parametrize("number", range(2))
        def test_lock(number):
            pytest.fail(multiprocessing.Lock()._semlock.name or "nameless")
        """
    )
    recorded = project.pytest("-q", "--hermetic-all", "--hermetic-record=journals")
    assert recorded.outcomes() == {"failed": 2}, recorded.text
    for journal in project.journals():
        replayed = project.pytest("-q", f"--hermetic-replay={journal}")
        assert replayed.outcomes()["failed"] == 1 and "Mismatch" not in replayed.text, replayed.text


def test_races_between_two_lines_are_found_while_recording_and_replay(told):
    row = told("""
class Till:
    total = 0
    def deposit(self):
        for _ in range(3):
            seen = self.total
            self.total = seen + 1

def act():
    till = Till()
    clerks = [threading.Thread(target=till.deposit) for _ in range(3)]
    for clerk in clerks:
        clerk.start()
    for clerk in clerks:
        clerk.join()
    return till.total

rows = []
for seed in range(30):
    recorded, _ = timed(act, seed=seed, schedule="seeded", record="x.journal")
    rows.append([recorded] + [timed(act, replay="x.journal")[0] for _ in range(3)])
print(json.dumps(rows))
""")
    assert all(len(set(outcomes)) == 1 for outcomes in row), row
    assert len({recorded for recorded, *_ in row}) > 2, "the races are found"


def test_a_failing_race_of_pytest_replays_to_the_same_failure(project):
    project.write(
        test_race="""
        import pytest, threading, time

        def test_all_arrive():
            seen = []
            def arrive(name):
                time.sleep(0.002)
                seen.append(name)
            threads = [threading.Thread(target=arrive, args=(name,)) for name in "abcdefgh"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(0.0005)
            pytest.fail("".join(seen))
        """
    )
    recorded = project.pytest("-q", "--hermetic-all", "--hermetic-record=journals")
    assert recorded.outcomes() == {"failed": 1}, recorded.text
    (journal,) = project.journals()
    for _ in range(3):
        replayed = project.pytest("-q", f"--hermetic-replay={journal}")
        assert replayed.errors() == recorded.errors(), replayed.text


def test_the_timeline_tells_who_went_on_and_why(program, tmp_path):
    told = program(
        HEADER
        + """
def act():
    rang = threading.Event()
    def ring():
        time.sleep(0.01)
        rang.set()
    thread = threading.Thread(target=ring)
    thread.start()
    rang.wait()
    thread.join()
timed(act, record="x.journal")
"""
    )
    assert told.code == 0, told.text
    shown = program("import sys; from hermetic._console import main; sys.exit(main())", "journal", "show", "x.journal")
    lines = [" ".join(line.split()[1:]) for line in shown.text.splitlines()]
    for words in [
        "0 woken by thread 1",
        "1 turn its turn",
        "1 timed out its wait is over",
        "0 wait semaphore, no limit",
    ]:
        assert any(line.startswith(words) for line in lines), shown.text
