/* Members of classic groups that come at once, in one thread: what a member says is next to nothing of its cost.

   `members PORT COUNT TOPIC` connects COUNT members to 127.0.0.1:PORT, asks on each connection for ApiVersions, as
   clients do, prints a line once all are answered, and reads names of groups from stdin, a line each.
   For each the members join at once, and one line on stdout says how many seconds passed until all were synced in one
   generation, and how many requests they sent. Then they leave.

   A member joins, joins again with the id that it was given, syncs (the leader with an assignment for each), and learns
   by its heartbeats that others came later. The versions are the last ones that are not flexible: JoinGroup 5, SyncGroup
   3, Heartbeat 3, LeaveGroup 3. */
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
#include <time.h>
#include <unistd.h>

enum { JOIN_GROUP = 11, HEARTBEAT = 12, LEAVE_GROUP = 13, SYNC_GROUP = 14, API_VERSIONS = 18 };
enum { NO_ERROR = 0, REBALANCE_IN_PROGRESS = 27, MEMBER_ID_REQUIRED = 79 };
enum { MOST_MEMBERS = 1000, MOST_EVENTS = 256, ID_BYTES = 256, TIMEOUT_MS = 30000, GIVE_UP_S = 120 };
/* Between a member's heartbeats, by which it learns that others have come. Clients take seconds. */
#define HEARTBEAT_S 0.005

typedef struct {
    uint8_t *data;
    size_t size, room;
} buffer_t;

typedef struct {
    int fd;
    char id[ID_BYTES];
    int api_key;         /* of the request under way; 0: none */
    int32_t generation;  /* that it was told of */
    int32_t synced;      /* generation that it has synced in; 0: in none */
    double heartbeat_at; /* when it sends the next one; 0: it waits for an answer */
    buffer_t answer;
} member_t;

static member_t *members;
static uint32_t count;
static unsigned long sent_count;
static const char *group, *topic;
static buffer_t out;

static void fail(const char *what) {
    fprintf(stderr, "members: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void reserve(buffer_t *buffer, size_t bytes) {
    if (buffer->size + bytes <= buffer->room) return;
    buffer->room = 2 * (buffer->size + bytes);
    buffer->data = realloc(buffer->data, buffer->room);
    if (buffer->data == NULL) fail("no memory");
}

static void put(const void *data, size_t bytes) {
    reserve(&out, bytes);
    memcpy(out.data + out.size, data, bytes);
    out.size += bytes;
}

static void put_i16(int value) {
    uint16_t stored = htons((uint16_t)value);
    put(&stored, sizeof stored);
}

static void put_i32(int32_t value) {
    uint32_t stored = htonl((uint32_t)value);
    put(&stored, sizeof stored);
}

static void put_text(const char *text) {
    size_t bytes = strlen(text);
    put_i16((int)bytes);
    put(text, bytes);
}

static void begin(int api_key, int version) {
    out.size = 0;
    put_i32(0); /* the length, when it is known */
    put_i16(api_key);
    put_i16(version);
    put_i32(0); /* correlation id: one request is under way */
    put_text("bench");
}

static void send_to(member_t *member, int api_key) {
    uint32_t length = htonl((uint32_t)(out.size - 4));
    memcpy(out.data, &length, sizeof length);
    for (size_t sent = 0; sent < out.size;) {
        ssize_t done = send(member->fd, out.data + sent, out.size - sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail("send");
        sent += (size_t)done;
    }
    member->api_key = api_key;
    member->heartbeat_at = 0;
    member->answer.size = 0;
    sent_count++;
}

static void join(member_t *member) {
    member->synced = 0;
    begin(JOIN_GROUP, 5);
    put_text(group);
    put_i32(TIMEOUT_MS); /* session */
    put_i32(TIMEOUT_MS); /* rebalance */
    put_text(member->id);
    put_i16(-1); /* no instance id */
    put_text("consumer");
    put_i32(1);
    put_text("range");
    put_i32((int32_t)(2 + 4 + 2 + strlen(topic) + 4)); /* a subscription: version, topics, user data */
    put_i16(0);
    put_i32(1);
    put_text(topic);
    put_i32(-1);
    send_to(member, JOIN_GROUP);
}

static void begin_of_generation(int api_key, member_t *member) {
    begin(api_key, 3);
    put_text(group);
    put_i32(member->generation);
    put_text(member->id);
    put_i16(-1);
}

static void heartbeat(member_t *member) {
    begin_of_generation(HEARTBEAT, member);
    send_to(member, HEARTBEAT);
}

/* What is left of an answer. */
typedef struct {
    const uint8_t *at, *end;
} reader_t;

static const uint8_t *take(reader_t *from, size_t bytes) {
    errno = 0;
    if ((size_t)(from->end - from->at) < bytes) fail("a short answer");
    from->at += bytes;
    return from->at - bytes;
}

static int take_i16(reader_t *from) {
    uint16_t value;
    memcpy(&value, take(from, sizeof value), sizeof value);
    return (int16_t)ntohs(value);
}

static int32_t take_i32(reader_t *from) {
    uint32_t value;
    memcpy(&value, take(from, sizeof value), sizeof value);
    return (int32_t)ntohl(value);
}

/* `text` may be NULL, else it has ID_BYTES. */
static void take_text(reader_t *from, char *text) {
    int bytes = take_i16(from);
    const uint8_t *found = take(from, bytes < 0 ? 0 : (size_t)bytes);
    if (text == NULL) return;
    errno = 0;
    if (bytes < 0 || bytes >= ID_BYTES) fail("an id that is too long");
    memcpy(text, found, (size_t)bytes);
    text[bytes] = 0;
}

/* `rest` is a JoinGroup's answer behind its error: the leader's assignments are made of its members. */
static void sync_group(member_t *member, reader_t *rest) {
    char leader[ID_BYTES], id[ID_BYTES];
    member->generation = take_i32(rest);
    take_text(rest, NULL); /* protocol */
    take_text(rest, leader);
    take_text(rest, member->id);
    begin_of_generation(SYNC_GROUP, member);
    int32_t others = take_i32(rest);
    put_i32(others);
    for (int32_t n = 0; n < others; n++) {
        take_text(rest, id);
        take_text(rest, NULL); /* instance id */
        take(rest, (size_t)take_i32(rest));
        put_text(id);
        put_i32(1);
        put("x", 1);
    }
    send_to(member, SYNC_GROUP);
}

static void refused(const char *what, int code) {
    fprintf(stderr, "members: %s is refused: error code %d\n", what, code);
    exit(1);
}

static void answered(member_t *member) {
    reader_t rest = {member->answer.data + 8, member->answer.data + member->answer.size};
    int api_key = member->api_key;
    member->api_key = 0;
    take_i32(&rest); /* throttle time */
    int code = take_i16(&rest);
    if (api_key == JOIN_GROUP && code == MEMBER_ID_REQUIRED) {
        take_i32(&rest);
        take_text(&rest, NULL);
        take_text(&rest, NULL);
        take_text(&rest, member->id);
        join(member);
    } else if (code == REBALANCE_IN_PROGRESS) {
        join(member);
    } else if (code != NO_ERROR) {
        refused(api_key == JOIN_GROUP ? "JoinGroup" : api_key == SYNC_GROUP ? "SyncGroup" : "Heartbeat", code);
    } else if (api_key == JOIN_GROUP) {
        sync_group(member, &rest);
    } else {
        member->synced = member->generation;
        member->heartbeat_at = now_s() + HEARTBEAT_S;
    }
}

/* Reads what is there. Returns whether the answer is whole. */
static int receive(member_t *member) {
    buffer_t *answer = &member->answer;
    reserve(answer, 4096);
    ssize_t got = recv(member->fd, answer->data + answer->size, answer->room - answer->size, 0);
    if (got <= 0) {
        if (got < 0 && errno == EINTR) return 0;
        errno = got < 0 ? errno : ECONNRESET;
        fail("recv");
    }
    answer->size += (size_t)got;
    if (answer->size < 8) return 0;
    reader_t head = {answer->data, answer->data + 4};
    size_t whole = 4 + (size_t)take_i32(&head);
    errno = 0;
    if (answer->size > whole) fail("an answer that nobody asked for");
    return answer->size == whole;
}

static void connect_all(int port, int poll_fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (uint32_t n = 0; n < count; n++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = n};
        int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0) fail("TCP_NODELAY");
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
        members[n].fd = fd;
    }
}

/* A connection that the broker has not accepted yet would cost the first group what accepting it costs. */
static void ask_api_versions(void) {
    for (uint32_t n = 0; n < count; n++) {
        begin(API_VERSIONS, 0);
        send_to(&members[n], API_VERSIONS);
    }
    for (uint32_t n = 0; n < count; n++) {
        while (!receive(&members[n])) continue;
        members[n].api_key = 0;
    }
}

static int are_together(void) {
    for (uint32_t n = 0; n < count; n++)
        if (members[n].synced == 0 || members[n].synced != members[0].synced) return 0;
    return 1;
}

static void serve(int poll_fd) {
    struct epoll_event events[MOST_EVENTS];
    double give_up_s = now_s() + GIVE_UP_S;
    while (!are_together()) {
        double now = now_s(), next_s = now + HEARTBEAT_S;
        errno = 0;
        if (now > give_up_s) fail("the members are not in one generation");
        for (uint32_t n = 0; n < count; n++) {
            member_t *member = &members[n];
            if (member->heartbeat_at > 0 && member->heartbeat_at <= now)
                heartbeat(member);
            else if (member->heartbeat_at > 0 && member->heartbeat_at < next_s)
                next_s = member->heartbeat_at;
        }
        int ready = epoll_wait(poll_fd, events, MOST_EVENTS, (int)((next_s - now) * 1000) + 1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int at = 0; at < ready; at++) {
            member_t *member = &members[events[at].data.u32];
            if (receive(member)) answered(member);
        }
    }
}

/* The answers to heartbeats that are under way, then the first member speaks for all. */
static void leave(void) {
    for (uint32_t n = 0; n < count; n++)
        while (members[n].api_key && !receive(&members[n])) continue;
    begin(LEAVE_GROUP, 3);
    put_text(group);
    put_i32((int32_t)count);
    for (uint32_t n = 0; n < count; n++) {
        put_text(members[n].id);
        put_i16(-1);
    }
    send_to(&members[0], LEAVE_GROUP);
    while (!receive(&members[0])) continue;
    reader_t rest = {members[0].answer.data + 8, members[0].answer.data + members[0].answer.size};
    take_i32(&rest);
    int code = take_i16(&rest);
    if (code != NO_ERROR) refused("LeaveGroup", code);
}

int main(int argument_count, char **arguments) {
    char name[ID_BYTES];
    errno = 0;
    if (argument_count != 4) fail("PORT COUNT TOPIC");
    count = (uint32_t)atoi(arguments[2]);
    topic = arguments[3];
    if (count == 0 || count > MOST_MEMBERS) fail("COUNT");
    members = calloc(count, sizeof *members);
    int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (members == NULL || poll_fd < 0) fail("no room");
    connect_all(atoi(arguments[1]), poll_fd);
    ask_api_versions();
    puts("ready");
    fflush(stdout);
    group = name;
    while (fgets(name, sizeof name, stdin) != NULL) {
        name[strcspn(name, "\n")] = 0;
        sent_count = 0;
        double began_s = now_s();
        for (uint32_t n = 0; n < count; n++) {
            members[n].id[0] = 0;
            join(&members[n]);
        }
        serve(poll_fd);
        printf("%.6f %lu\n", now_s() - began_s, sent_count);
        fflush(stdout);
        leave();
    }
    return 0;
}
