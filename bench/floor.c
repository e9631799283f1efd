/* A floor, not a broker: what the kernel alone takes to receive a request, to keep it and to answer it.

   floor PORT FILE answers on 127.0.0.1, in one thread. What it answers comes on stdin until that ends: for each answer
   an API key, the size from which a request of that key gets it, a length and so many bytes, which follow the
   correlation id. Numbers are in the machine's byte order; of a key's answers the smallest size comes first. The floor
   looks at nothing else of a request, and writes each Produce as it came to the end of FILE. A request that it has no
   answer to, or of more than MOST_BYTES, ends the program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, MOST_EVENTS = 256, MOST_ANSWERS = 32, MOST_ANSWER_BYTES = 4096 };
enum { PRODUCE = 0, HEAD_BYTES = 12 };

typedef struct {
    uint32_t key, from_bytes, size;
} given_t;

typedef struct {
    int fd;
    size_t received;
    uint8_t request[MOST_BYTES];
} client_t;

typedef struct {
    given_t given;
    size_t size;
    uint8_t bytes[8 + MOST_ANSWER_BYTES]; /* as it is sent: length, correlation id, what was given */
} answer_t;

static answer_t answers[MOST_ANSWERS];
static int answer_count, kept_fd;

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static uint32_t load_u32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return ntohl(value);
}

static void read_answers(void) {
    answer_t *answer = answers;
    for (; fread(&answer->given, sizeof answer->given, 1, stdin) == 1; answer++, answer_count++) {
        uint32_t size = answer->given.size, length = htonl(4 + size);
        if (answer_count == MOST_ANSWERS - 1 || size > MOST_ANSWER_BYTES) fail("too many answers, or too long");
        memcpy(answer->bytes, &length, sizeof length);
        if (fread(answer->bytes + 8, 1, size, stdin) != size) fail("the answers are too short");
        answer->size = 8 + size;
    }
}

static answer_t *answer_to(unsigned key, size_t request_bytes) {
    answer_t *found = NULL;
    for (answer_t *answer = answers; answer < answers + answer_count; answer++)
        if (answer->given.key == key && answer->given.from_bytes <= request_bytes) found = answer;
    if (found == NULL) fail("a request without an answer");
    return found;
}

/* Answers the whole requests that are there. The answer is small, so a client that has read the one before takes it. */
static void answer_all(client_t *client) {
    size_t at = 0;
    while (client->received - at >= HEAD_BYTES) {
        const uint8_t *request = client->request + at;
        size_t size = 4 + (size_t)load_u32(request);
        unsigned key = load_u32(request + 4) >> 16;
        if (size > MOST_BYTES) fail("a large request");
        if (client->received - at < size) break;
        if (key == PRODUCE && write(kept_fd, request, size) != (ssize_t)size) fail("write");
        answer_t *answer = answer_to(key, size);
        memcpy(answer->bytes + 4, request + 8, 4);
        if (send(client->fd, answer->bytes, answer->size, MSG_NOSIGNAL) != (ssize_t)answer->size) fail("send");
        at += size;
    }
    client->received -= at;
    if (at) memmove(client->request, client->request + at, client->received);
}

/* Returns whether the client is still there. */
static int serve(client_t *client) {
    ssize_t got = recv(client->fd, client->request + client->received, MOST_BYTES - client->received, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (got <= 0) return 0;
    client->received += (size_t)got;
    answer_all(client);
    return 1;
}

static int listen_on(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0) fail("socket");
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1024) < 0) fail("bind");
    return fd;
}

int main(int count, char **words) {
    struct epoll_event events[MOST_EVENTS], event = {.events = EPOLLIN, .data.ptr = NULL};
    if (count != 3) fail("floor PORT FILE < answers");
    read_answers();
    kept_fd = open(words[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (kept_fd < 0) fail(words[2]);
    int listener = listen_on((uint16_t)atoi(words[1])), poll_fd = epoll_create1(EPOLL_CLOEXEC), one = 1;
    if (poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event) < 0) fail("epoll");
    for (;;) {
        int ready = epoll_wait(poll_fd, events, MOST_EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int at = 0; at < ready; at++) {
            client_t *client = events[at].data.ptr;
            if (client == NULL) {
                client = malloc(sizeof *client); /* not cleared: pages that nobody fills cost nothing */
                if (client == NULL) fail("no memory");
                client->received = 0;
                client->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (client->fd < 0) fail("accept");
                if (setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0) fail("TCP_NODELAY");
                event.data.ptr = client;
                if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0) fail("epoll_ctl");
            } else if (!serve(client)) {
                close(client->fd);
                free(client);
            }
        }
    }
}
