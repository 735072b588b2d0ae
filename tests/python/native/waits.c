/* Waits of the C library. Each function waits for `ms` milliseconds in its own way, and returns 0 if it ended as its manual
 * says. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static struct timespec span(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    return t;
}
static struct timespec after(clockid_t id, long ms) {
    struct timespec now, t = span(ms);
    clock_gettime(id, &now);
    t.tv_sec += now.tv_sec + (t.tv_nsec + now.tv_nsec) / 1000000000;
    t.tv_nsec = (t.tv_nsec + now.tv_nsec) % 1000000000;
    return t;
}

int wait_cond_timedwait(long ms) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ms);
    pthread_mutex_lock(&m);
    int e = pthread_cond_timedwait(&c, &m, &t);
    pthread_mutex_unlock(&m);
    return e != ETIMEDOUT;
}
int wait_cond_clockwait(long ms) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    struct timespec t = after(CLOCK_MONOTONIC, ms);
    pthread_mutex_lock(&m);
    int e = pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &t);
    pthread_mutex_unlock(&m);
    return e != ETIMEDOUT;
}
int wait_mutex_timedlock(long ms) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ms);
    pthread_mutex_lock(&m);
    return pthread_mutex_timedlock(&m, &t) != ETIMEDOUT;
}
int wait_mutex_clocklock(long ms) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = after(CLOCK_MONOTONIC, ms);
    pthread_mutex_lock(&m);
    return pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &t) != ETIMEDOUT;
}
int wait_rwlock_timedwrlock(long ms) {
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ms);
    pthread_rwlock_rdlock(&l);
    return pthread_rwlock_timedwrlock(&l, &t) != ETIMEDOUT;
}
static void *hold(void *lock) {
    pthread_rwlock_wrlock(lock);
    return 0;
}
int wait_rwlock_clockrdlock(long ms) {
    static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    pthread_t id;
    pthread_rwlock_init(&l, 0);
    pthread_create(&id, 0, hold, &l);
    pthread_join(id, 0);
    struct timespec t = after(CLOCK_MONOTONIC, ms);
    return pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &t) != ETIMEDOUT;
}
static void *nap(void *ms) {
    struct timespec t = span((long)ms);
    nanosleep(&t, 0);
    return 0;
}
int wait_timedjoin(long ms) {
    pthread_t id;
    pthread_create(&id, 0, nap, (void *)(2 * ms));
    struct timespec t = after(CLOCK_REALTIME, ms);
    int e = pthread_timedjoin_np(id, 0, &t);
    return e != ETIMEDOUT || pthread_join(id, 0);
}
int wait_join(long ms) {
    pthread_t id;
    pthread_create(&id, 0, nap, (void *)ms);
    return pthread_join(id, 0);
}
int wait_sem_timedwait(long ms) {
    sem_t m;
    sem_init(&m, 0, 0);
    struct timespec t = after(CLOCK_REALTIME, ms);
    return !(sem_timedwait(&m, &t) == -1 && errno == ETIMEDOUT);
}
int wait_sem_clockwait(long ms) {
    sem_t m;
    sem_init(&m, 0, 0);
    struct timespec t = after(CLOCK_MONOTONIC, ms);
    return !(sem_clockwait(&m, CLOCK_MONOTONIC, &t) == -1 && errno == ETIMEDOUT);
}
int wait_cnd_timedwait(long ms) {
    mtx_t m;
    cnd_t c;
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    struct timespec t = after(CLOCK_REALTIME, ms);
    mtx_lock(&m);
    int e = cnd_timedwait(&c, &m, &t);
    mtx_unlock(&m);
    return e != thrd_timedout;
}
int wait_mtx_timedlock(long ms) {
    mtx_t m;
    mtx_init(&m, mtx_timed);
    struct timespec t = after(CLOCK_REALTIME, ms);
    mtx_lock(&m);
    return mtx_timedlock(&m, &t) != thrd_timedout;
}
static int thread_nap(void *ms) {
    struct timespec t = span((long)ms);
    thrd_sleep(&t, 0);
    return 7;
}
int wait_thrd_join(long ms) {
    thrd_t id;
    int r = 0;
    if (thrd_create(&id, thread_nap, (void *)ms) != thrd_success) return 1;
    return thrd_join(id, &r) != thrd_success || r != 7;
}
int wait_semtimedop(long ms) {
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf op = {0, -1, 0};
    struct timespec t = span(ms);
    int e = semtimedop(set, &op, 1, &t), n = errno;
    semctl(set, 0, IPC_RMID);
    return !(e == -1 && n == EAGAIN);
}
int wait_mq_timed(long ms) {
    struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[64], b[8];
    snprintf(name, sizeof name, "/hermetic-%d-%p", getpid(), (void *)&a);
    mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &a);
    if (q < 0) return 0; /* the machine has no message queues */
    mq_unlink(name);
    struct timespec t = after(CLOCK_REALTIME, ms);
    int e = mq_timedreceive(q, b, 8, 0, &t), n = errno;
    if (e != -1 || n != ETIMEDOUT) return 1;
    mq_send(q, "x", 1, 0);
    t = after(CLOCK_REALTIME, ms);
    e = mq_timedsend(q, "y", 1, 0, &t), n = errno;
    mq_close(q);
    return !(e == -1 && n == ETIMEDOUT);
}
int wait_sigtimedwait(long ms) {
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    struct timespec t = span(ms);
    int e = sigtimedwait(&set, 0, &t), n = errno;
    pthread_kill(pthread_self(), SIGUSR2);
    int taken = sigtimedwait(&set, 0, &t);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    return !(e == -1 && n == EAGAIN && taken == SIGUSR2);
}
int wait_recv_timeout(long ms) {
    int p[2];
    char b;
    socketpair(AF_UNIX, SOCK_STREAM, 0, p);
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    setsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    int e = recv(p[0], &b, 1, 0), n = errno;
    close(p[0]);
    close(p[1]);
    return !(e == -1 && n == EAGAIN);
}
int wait_recvmmsg(long ms) {
    int p[2];
    char b[8];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, p);
    struct iovec v = {b, 8};
    struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
    struct timespec t = span(ms);
    int e = recvmmsg(p[0], &m, 1, 0, &t), n = errno;
    send(p[1], "abc", 3, 0);
    int got = recvmmsg(p[0], &m, 1, 0, &t);
    close(p[0]);
    close(p[1]);
    return !(e == -1 && n == EAGAIN && got == 1 && m.msg_len == 3);
}

/* Waits on the reading end of a pipe that nobody writes to. */
static int on_pipe(long ms, int (*wait)(int fd, long ms)) {
    int p[2];
    if (pipe(p)) return 1;
    int result = wait(p[0], ms);
    close(p[0]);
    close(p[1]);
    return result;
}
static int by_poll(int fd, long ms) {
    struct pollfd f = {fd, POLLIN, 0};
    return poll(&f, 1, ms);
}
int wait_poll(long ms) { return on_pipe(ms, by_poll); }
static int by_ppoll(int fd, long ms) {
    struct pollfd f = {fd, POLLIN, 0};
    struct timespec t = span(ms);
    return ppoll(&f, 1, &t, 0);
}
int wait_ppoll(long ms) { return on_pipe(ms, by_ppoll); }
static int by_pselect(int fd, long ms) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timespec t = span(ms);
    return pselect(fd + 1, &set, 0, 0, &t, 0);
}
int wait_pselect(long ms) { return on_pipe(ms, by_pselect); }
static int by_epoll(int fd, long ms) {
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    int result = epoll_wait(set, &event, 1, ms);
    close(set);
    return result;
}
int wait_epoll(long ms) { return on_pipe(ms, by_epoll); }
int wait_select(long ms) {
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    return select(0, 0, 0, 0, &t);
}
int wait_sleep(long ms) { return sleep((ms + 999) / 1000); }
int wait_usleep(long ms) {
    for (; ms > 900000; ms -= 900000)
        usleep(900000000);
    usleep(ms * 1000);
    return 0;
}
int wait_nanosleep(long ms) {
    struct timespec t = span(ms);
    return nanosleep(&t, 0);
}
int wait_clock_nanosleep(long ms) {
    struct timespec t = after(CLOCK_MONOTONIC, ms);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}
