"""multiprocessing in every manner, one test after another."""

import concurrent.futures
import multiprocessing
import time
from multiprocessing import shared_memory

import pytest


def square(number):
    time.sleep(number)
    return number * number


def put(queue, number):
    time.sleep(number)
    queue.put(number)


def count(lock, value):
    for _ in range(100):
        with lock:
            value.value += 1


@pytest.fixture(params=["spawn", "forkserver", "fork"])
def context(request):
    return multiprocessing.get_context(request.param)


def test_pool(context):
    with context.Pool(2) as pool:
        assert pool.map(square, [1, 2, 3]) == [1, 4, 9]


def test_executor(context):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert list(executor.map(square, [1, 2])) == [1, 4]


def test_queue(context):
    queue = context.Queue()
    processes = [context.Process(target=put, args=(queue, number)) for number in range(3)]
    for process in processes:
        process.start()
    assert sorted(queue.get() for _ in processes) == [0, 1, 2]
    for process in processes:
        process.join()


def test_value(context):
    lock, value = context.Lock(), context.Value("i", 0, lock=False)
    processes = [context.Process(target=count, args=(lock, value)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert value.value == 300


def test_barrier(context):
    barrier = context.Barrier(2)
    process = context.Process(target=barrier.wait)
    process.start()
    barrier.wait()
    process.join()
    assert process.exitcode == 0


def test_terminated(context):
    process = context.Process(target=square, args=(10**6,))
    process.start()
    process.terminate()
    process.join()
    assert process.exitcode == -15


def test_manager(context):
    with context.Manager() as manager:
        shared = manager.dict()
        shared["a"] = 1
        assert dict(shared) == {"a": 1}


def test_shared_memory():
    memory = shared_memory.SharedMemory(create=True, size=100)
    memory.buf[0] = 1
    memory.close()
    memory.unlink()
