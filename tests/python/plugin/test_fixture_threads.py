"""Threads that outlive the fixture which started them: servers, event loops, pools. In a test they are guests.

How far such a thread has come when a test begins is not the same each time, so a replay does not follow the order of
its turns. What the test gets from it is the same.
"""

from __future__ import annotations

import pytest

REPLAYS = 3

HEADER = """
import asyncio, concurrent.futures, http.server, os, queue, random, threading, time, urllib.request, uuid, pytest

def end(*values):
    print("DREW", *values)
    assert not os.environ.get("FAIL")
"""

SERVER = """
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(uuid.uuid4().hex.encode())
    def log_message(self, *arguments): pass

@pytest.fixture(scope="session")
def url():
    server = http.server.{server}(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{{server.server_port}}/"
    server.shutdown(); thread.join(); server.server_close()

def test_it(url):
    end(*(urllib.request.urlopen(url, timeout=20).read().decode() for _ in range(3)), time.time())
"""

BEAT = """
@pytest.fixture(scope="session")
def beat():
    count, stop, news = [0], threading.Event(), threading.Condition()
    def run():
        while not stop.wait(0.02):
            with news:
                count[0] += 1
                news.notify_all()
    thread = threading.Thread(target=run)
    thread.start()
    yield count, news
    stop.set(); thread.join()
"""

SUITES = {
    "a server with a thread": SERVER.format(server="HTTPServer"),
    "a server with a thread for each request": SERVER.format(server="ThreadingHTTPServer"),
    "a thread that is waited for": BEAT
    + """
def test_it(beat):
    count, news = beat
    with news:
        begin = count[0]
        assert news.wait_for(lambda: count[0] > begin + 3, timeout=60)
    end(uuid.uuid4())
""",
    "a thread that works beside those of the test": BEAT
    + """
def test_it(beat):
    done = queue.Queue()
    def work(number):
        time.sleep(0.01 * number)
        done.put((number, uuid.uuid4().hex[:6]))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    end(*(done.get() for _ in threads), time.time())
""",
    "an event loop": """
@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop); thread.join(); loop.close()

async def work(number):
    await asyncio.sleep(0.02 * number)
    return number, uuid.uuid4().hex[:8]

def test_it(loop):
    futures = [asyncio.run_coroutine_threadsafe(work(number), loop) for number in (3, 1, 2)]
    end(*(future.result(timeout=30) for future in futures), time.time())
""",
    "a pool": """
@pytest.fixture(scope="session")
def pool():
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(time.sleep, [0.01] * 3))
        yield pool

def work(number):
    time.sleep(0.01)
    return number

def test_it(pool):
    futures = [pool.submit(work, number) for number in range(6)]
    end(*(future.result() for future in futures), random.random(), time.time())
""",
}


@pytest.mark.parametrize("what", SUITES)
def test_a_recorded_test_with_a_thread_of_a_fixture_replays(suite, what):
    suite.write({"test_a.py": HEADER + SUITES[what]})
    recorded = suite.run("-s", "--hermetic-all", "--hermetic-record=journals", environment={"FAIL": "1"})
    assert recorded.counts == {"failed": 1}
    (journal,) = suite.journals()
    for _ in range(REPLAYS):
        replayed = suite.run("-s", f"--hermetic-replay={journal}", environment={"FAIL": "1"})
        assert replayed.counts["failed"] == 1
        assert replayed.said("DREW") == recorded.said("DREW")


@pytest.mark.parametrize("what", SUITES)
def test_under_a_seed_each_run_is_alike(suite, what):
    suite.write({"test_a.py": HEADER + SUITES[what]})
    runs = [suite.run("-s", "--hermetic-all", "--hermetic-seed=5") for _ in range(2)]
    assert [run.counts for run in runs] == [{"passed": 1}] * 2
    assert runs[0].said("DREW") == runs[1].said("DREW")
