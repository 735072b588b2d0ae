// Waits of the C++ standard library. Each function waits for `ms` milliseconds and returns 0 if it timed out.

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

using std::chrono::milliseconds;

extern "C" int wait_condition_variable(long ms) {
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    return condition.wait_for(lock, milliseconds(ms)) != std::cv_status::timeout;
}

extern "C" int wait_condition_until(long ms) {
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    auto deadline = std::chrono::system_clock::now() + milliseconds(ms);
    return condition.wait_until(lock, deadline, [] { return false; });
}

extern "C" int wait_future(long ms) {
    std::promise<int> promise;
    return promise.get_future().wait_for(milliseconds(ms)) != std::future_status::timeout;
}

extern "C" int wait_timed_mutex(long ms) {
    std::timed_mutex mutex;
    mutex.lock();
    int failed = 1;
    std::thread([&] { failed = mutex.try_lock_for(milliseconds(ms)); }).join();
    mutex.unlock();
    return failed;
}

extern "C" int wait_shared_mutex(long ms) {
    std::shared_timed_mutex mutex;
    mutex.lock();
    int failed = 1;
    std::thread([&] { failed = mutex.try_lock_shared_for(milliseconds(ms)); }).join();
    mutex.unlock();
    return failed;
}

extern "C" int wait_sleep_for(long ms) {
    std::this_thread::sleep_for(milliseconds(ms));
    return 0;
}
