/* Clients that cost next to nothing, in one thread: each has one connection with one request under way.

   What they do comes on stdin and what they found goes to stdout, in the machine's byte order; wire_load.py has both
   forms. A request is a whole frame. Either it is a Produce, whose sequence and CRC are set for each send and whose
   answer has its error code at a place that is known; or it is the same each time, and so is its answer.

   With a rate, requests fall due at equal distances whatever the broker does, and a latency begins when its request was
   due. Without a number of seconds they do so until stdin ends; then a first byte on stdout says that there was an
   answer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../cext/crc32c_native.h"

enum { AT_CRC = 17, AT_ATTRIBUTES = 21, AT_BASE_SEQUENCE = 53, LENGTH_BYTES = 4, MOST_EVENTS = 256 };

typedef struct {
    uint32_t count;
    uint32_t port; /* on 127.0.0.1 */
    double seconds; /* 0, with a rate: until stdin ends */
    double rate; /* requests a second of all clients; 0 is as many as there can be */
} plan_t;

typedef struct {
    uint32_t frame_bytes;
    int32_t batch_at; /* of the batch in the frame; -1: the frame is sent as it is */
    int32_t records;
    uint32_t error_at; /* of the error code in the answer, with its length */
} given_t;

typedef struct {
    given_t given;
    uint8_t *frame;
    uint8_t *answer;
    size_t answer_size, received;
    uint8_t *first; /* answer of a request that is the same each time */
    size_t first_size;
    uint32_t sequence;
    int fd;
    double began_s;
    int next; /* of those that have nothing to do */
} client_t;

static client_t *clients;
static float *taken_us;
static size_t taken_count, taken_room;
static kshim_crc32c_fn crc32c;

static void fail(const char *what) {
    fprintf(stderr, "wire_load: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static void *room(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (made == NULL) fail("no memory");
    return made;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void read_input(void *target, size_t bytes) {
    if (fread(target, 1, bytes, stdin) != bytes) fail("the plan is too short");
}

static void store_u32(uint8_t *p, uint32_t value) {
    value = htonl(value);
    memcpy(p, &value, sizeof value);
}

static uint32_t load_u32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return ntohl(value);
}

static void send_request(client_t *client, double began_s) {
    const given_t *given = &client->given;
    size_t sent = 0;
    if (given->batch_at >= 0) {
        uint8_t *batch = client->frame + given->batch_at;
        size_t checked = given->frame_bytes - (size_t)given->batch_at - AT_ATTRIBUTES;
        store_u32(batch + AT_BASE_SEQUENCE, client->sequence);
        store_u32(batch + AT_CRC, kshim_crc32c_run(crc32c, 0, batch + AT_ATTRIBUTES, checked));
        client->sequence = (client->sequence + (uint32_t)given->records) & 0x7FFFFFFF;
    }
    client->began_s = began_s;
    client->received = client->answer_size = 0;
    while (sent < given->frame_bytes) {
        ssize_t done = send(client->fd, client->frame + sent, given->frame_bytes - sent, MSG_NOSIGNAL);
        if (done < 0) {
            if (errno == EINTR) continue;
            fail("send");
        }
        sent += (size_t)done;
    }
}

/* Reads what is there. Returns whether the answer is whole. */
static int take(client_t *client) {
    size_t wanted = client->answer_size ? client->answer_size : LENGTH_BYTES + client->given.error_at;
    ssize_t got = recv(client->fd, client->answer + client->received, wanted + 4096 - client->received, 0);
    if (got <= 0) {
        if (got < 0 && errno == EINTR) return 0;
        errno = got < 0 ? errno : ECONNRESET;
        fail("recv");
    }
    client->received += (size_t)got;
    if (client->received < LENGTH_BYTES) return 0;
    if (client->answer_size == 0) {
        client->answer_size = LENGTH_BYTES + load_u32(client->answer);
        client->answer = room(client->answer, client->answer_size + 4096);
    }
    if (client->received > client->answer_size) fail("an answer that nobody asked for");
    return client->received == client->answer_size;
}

static void check(client_t *client) {
    const given_t *given = &client->given;
    errno = 0;
    if (given->batch_at >= 0) {
        if (client->answer_size < given->error_at + 2) fail("a short answer");
        if (client->answer[given->error_at] || client->answer[given->error_at + 1]) fail("the broker answered an error");
    } else if (client->first == NULL) {
        client->first_size = client->answer_size;
        client->first = room(NULL, client->first_size);
        memcpy(client->first, client->answer, client->first_size);
    } else if (client->first_size != client->answer_size || memcmp(client->first, client->answer, client->first_size)) {
        fail("another answer than the first");
    }
}

static void keep(double us) {
    if (taken_count == taken_room) {
        taken_room = taken_room ? 2 * taken_room : 1 << 16;
        taken_us = room(taken_us, taken_room * sizeof *taken_us);
    }
    taken_us[taken_count++] = (float)us;
}

static void connect_all(const plan_t *plan, int poll_fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)plan->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (uint32_t n = 0; n < plan->count; n++) {
        client_t *client = &clients[n];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = n};
        int yes = 1;
        client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
        if (setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0) fail("TCP_NODELAY");
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0) fail("epoll_ctl");
    }
}

/* Each client sends its next request when it has its answer. */
static void closed_loop(const plan_t *plan, int poll_fd, double began_s) {
    struct epoll_event events[MOST_EVENTS];
    uint32_t waiting = plan->count;
    for (uint32_t n = 0; n < plan->count; n++) send_request(&clients[n], now_s());
    while (waiting) {
        int count = epoll_wait(poll_fd, events, MOST_EVENTS, -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int at = 0; at < count; at++) {
            client_t *client = &clients[events[at].data.u32];
            if (!take(client)) continue;
            double now = now_s();
            keep((now - client->began_s) * 1e6);
            check(client);
            if (now < began_s + plan->seconds)
                send_request(client, now);
            else
                waiting--;
        }
    }
}

static void paced_loop(const plan_t *plan, int poll_fd, double began_s) {
    struct epoll_event events[MOST_EVENTS], tick = {.events = EPOLLIN, .data.u32 = plan->count};
    struct epoll_event end = {.events = EPOLLIN, .data.u32 = plan->count + 1};
    int is_endless = plan->seconds == 0;
    uint64_t total = is_endless ? UINT64_MAX : (uint64_t)(plan->rate * plan->seconds), sent = 0;
    int first_idle = 0, last_idle = (int)plan->count - 1;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &tick) < 0) fail("timerfd");
    if (is_endless && epoll_ctl(poll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &end) < 0) fail("stdin");
    for (uint32_t n = 0; n < plan->count; n++) clients[n].next = n + 1 < plan->count ? (int)n + 1 : -1;
    while (taken_count < total) {
        double due_s = began_s + (double)sent / plan->rate;
        while (first_idle >= 0 && sent < total && now_s() >= due_s) {
            client_t *client = &clients[first_idle];
            first_idle = client->next;
            if (first_idle < 0) last_idle = -1;
            send_request(client, due_s);
            due_s = began_s + (double)++sent / plan->rate;
        }
        if (first_idle >= 0 && sent < total) {
            struct itimerspec at = {.it_value.tv_sec = (time_t)due_s};
            at.it_value.tv_nsec = (long)((due_s - (double)at.it_value.tv_sec) * 1e9);
            if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) < 0) fail("timerfd_settime");
        }
        int count = epoll_wait(poll_fd, events, MOST_EVENTS, -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int at = 0; at < count; at++) {
            uint32_t n = events[at].data.u32;
            if (n == plan->count) {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) fail("read of the timer");
                continue;
            }
            if (n == plan->count + 1) {
                if (epoll_ctl(poll_fd, EPOLL_CTL_DEL, STDIN_FILENO, NULL) < 0) fail("stdin");
                total = sent;
                continue;
            }
            client_t *client = &clients[n];
            if (!take(client)) continue;
            if (is_endless && taken_count == 0 && write(STDOUT_FILENO, "", 1) != 1) fail("stdout");
            keep((now_s() - client->began_s) * 1e6);
            check(client);
            client->next = -1;
            if (last_idle >= 0)
                clients[last_idle].next = (int)n;
            else
                first_idle = (int)n;
            last_idle = (int)n;
        }
    }
}

int main(void) {
    plan_t plan;
    kshim_crc32c_init();
    crc32c = kshim_crc32c_implementations[0].run;
    read_input(&plan, sizeof plan);
    clients = calloc(plan.count, sizeof *clients);
    if (clients == NULL) fail("no memory");
    for (uint32_t n = 0; n < plan.count; n++) {
        client_t *client = &clients[n];
        read_input(&client->given, sizeof client->given);
        client->frame = room(NULL, client->given.frame_bytes);
        read_input(client->frame, client->given.frame_bytes);
        client->answer = room(NULL, LENGTH_BYTES + client->given.error_at + 4096);
    }
    int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd < 0) fail("epoll_create1");
    connect_all(&plan, poll_fd);
    double began_s = now_s();
    if (plan.rate > 0)
        paced_loop(&plan, poll_fd, began_s);
    else
        closed_loop(&plan, poll_fd, began_s);
    double took_s = now_s() - began_s;
    fwrite(&took_s, sizeof took_s, 1, stdout);
    fwrite(taken_us, sizeof *taken_us, taken_count, stdout);
    return fflush(stdout) ? 1 : 0;
}
