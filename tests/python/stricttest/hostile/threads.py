"""Threads, executors, timers and loops that outlive the test that made them, and are used by the next."""

import asyncio
import concurrent.futures
import os
import threading
import time

stop = threading.Event()
kept = {}


def wait():
    while not stop.wait(0.01):
        pass


def test_leaves_a_thread():
    threading.Thread(target=wait, daemon=True).start()
    time.sleep(1)


def test_beside_it():
    time.sleep(1000)


def test_leaves_an_executor():
    kept["executor"] = concurrent.futures.ThreadPoolExecutor(2)
    assert kept["executor"].submit(time.sleep, 5).result() is None


def test_uses_it():
    assert kept["executor"].submit(lambda: 3).result(timeout=50) == 3


def test_leaves_a_loop():
    kept["loop"] = asyncio.new_event_loop()
    threading.Thread(target=kept["loop"].run_forever, daemon=True).start()
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(30, 7), kept["loop"]).result() == 7


def test_uses_the_loop():
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(30, 8), kept["loop"]).result() == 8
    kept["loop"].call_soon_threadsafe(kept["loop"].stop)


def test_leaves_a_timer():
    kept["timer"] = threading.Timer(3600, lambda: None)
    kept["timer"].start()


def test_a_variable_from_a_thread():
    thread = threading.Thread(target=os.environ.update, args=({"LATER": "1"},))
    thread.start()
    thread.join()


def test_ends():
    stop.set()
    kept["timer"].cancel()
