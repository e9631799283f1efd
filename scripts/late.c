/* Makes late what is soon on most machines, for tests that would pass by luck: `scripts/layers.py` preloads it.
 *
 * Each variable is a time in microseconds, 0 without it. It is waited with the GIL released, as if the system had run
 * another thread at that moment:
 *
 *   LATE_AFTER_RESPONSE_US  once a server has sent something: what it does after a response is late
 *   LATE_TURN_US            once an event loop has woken up: a broker is late, also for calls from other threads
 *   LATE_REQUEST_US         before a client sends something: a broker is ahead of its clients
 *   LATE_FILE_US            at calls that change or read files
 *   LATE_THREAD_US          before a thread begins
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 1 << 16 };

/* Whether a descriptor is a connection that this process has accepted. */
static atomic_uchar is_accepted[MOST_DESCRIPTORS];
static long after_response_us, turn_us, request_us, file_us, thread_us;

static int (*holds_gil)(void);
static void *(*release_gil)(void);
static void (*take_gil)(void *);

#define REAL(name)                                      \
    static __typeof__(name) *real;                      \
    if (!real) {                                        \
        real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
    }

static long micros(const char *name) {
    const char *given = getenv(name);
    return given ? atol(given) : 0;
}

__attribute__((constructor)) static void read_variables(void) {
    after_response_us = micros("LATE_AFTER_RESPONSE_US");
    turn_us = micros("LATE_TURN_US");
    request_us = micros("LATE_REQUEST_US");
    file_us = micros("LATE_FILE_US");
    thread_us = micros("LATE_THREAD_US");
    /* Absent in programs that are no Python. */
    holds_gil = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
    release_gil = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    take_gil = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
}

static void sleep_for(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static void be_late(long us) {
    int number = errno;
    if (us <= 0) {
        return;
    }
    if (holds_gil && release_gil && take_gil && holds_gil()) {
        void *state = release_gil();
        sleep_for(us);
        take_gil(state);
    } else {
        sleep_for(us);
    }
    errno = number;
}

static int was_accepted(int fd) {
    return fd >= 0 && fd < MOST_DESCRIPTORS && is_accepted[fd];
}

static int noted(int fd) {
    if (fd >= 0 && fd < MOST_DESCRIPTORS) {
        is_accepted[fd] = 1;
    }
    return fd;
}

static ssize_t sent(int fd, ssize_t bytes) {
    if (bytes > 0 && was_accepted(fd)) {
        be_late(after_response_us);
    }
    return bytes;
}

int accept(int fd, struct sockaddr *address, socklen_t *size) {
    REAL(accept)
    return noted(real(fd, address, size));
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    REAL(accept4)
    return noted(real(fd, address, size, flags));
}

int close(int fd) {
    REAL(close)
    if (fd >= 0 && fd < MOST_DESCRIPTORS) {
        is_accepted[fd] = 0;
    }
    return real(fd);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(send)
    if (!was_accepted(fd)) {
        be_late(request_us);
    }
    return sent(fd, real(fd, data, size, flags));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(sendmsg)
    return sent(fd, real(fd, message, flags));
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write)
    return sent(fd, real(fd, data, size));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev)
    return sent(fd, real(fd, parts, count));
}

ssize_t sendfile(int fd, int file, off_t *offset, size_t size) {
    REAL(sendfile)
    return sent(fd, real(fd, file, offset, size));
}

static int woken(int count) {
    if (count > 0) {
        be_late(turn_us);
    }
    return count;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms) {
    REAL(epoll_wait)
    return woken(real(fd, events, most, timeout_ms));
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *signals) {
    REAL(epoll_pwait)
    return woken(real(fd, events, most, timeout_ms, signals));
}

int fsync(int fd) {
    REAL(fsync)
    be_late(file_us);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync)
    be_late(file_us);
    return real(fd);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset) {
    REAL(pread)
    be_late(file_us);
    return real(fd, data, size, offset);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    REAL(preadv)
    be_late(file_us);
    return real(fd, parts, count, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(pwrite)
    be_late(file_us);
    return real(fd, data, size, offset);
}

int rename(const char *from, const char *to) {
    REAL(rename)
    be_late(file_us);
    return real(from, to);
}

int ftruncate(int fd, off_t size) {
    REAL(ftruncate)
    be_late(file_us);
    return real(fd, size);
}

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *start_late(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    sleep_for(thread_us);
    return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    REAL(pthread_create)
    if (thread_us <= 0) {
        return real(thread, attributes, run, argument);
    }
    struct start *start = malloc(sizeof *start);
    if (!start) {
        return EAGAIN;
    }
    *start = (struct start){run, argument};
    int status = real(thread, attributes, start_late, start);
    if (status) {
        free(start);
    }
    return status;
}
