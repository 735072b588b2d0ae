// Waits of the C++ standard library. Each function waits for `seconds` and returns 0 if it timed out.

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

using std::chrono::seconds;

extern "C" int wait_condition_variable(long s) {
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    return condition.wait_for(lock, seconds(s)) != std::cv_status::timeout;
}

extern "C" int wait_condition_until(long s) {
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    auto deadline = std::chrono::system_clock::now() + seconds(s);
    return condition.wait_until(lock, deadline, [] { return false; });
}

extern "C" int wait_future(long s) {
    std::promise<int> promise;
    return promise.get_future().wait_for(seconds(s)) != std::future_status::timeout;
}

extern "C" int wait_timed_mutex(long s) {
    std::timed_mutex mutex;
    mutex.lock();
    int failed = 1;
    std::thread([&] { failed = mutex.try_lock_for(seconds(s)); }).join();
    mutex.unlock();
    return failed;
}

extern "C" int wait_shared_mutex(long s) {
    std::shared_timed_mutex mutex;
    mutex.lock();
    int failed = 1;
    std::thread([&] { failed = mutex.try_lock_shared_for(seconds(s)); }).join();
    mutex.unlock();
    return failed;
}

extern "C" int wait_sleep_for(long s) {
    std::this_thread::sleep_for(seconds(s));
    return 0;
}
