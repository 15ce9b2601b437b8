/* A question over a plain TCP socket: errno is classified, and the guard's deadline is the limit of every poll. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <holdfast/holdfast.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int wait_for(int fd, short what, int64_t deadline_us) {
    struct timespec now;
    struct pollfd watched = {.fd = fd, .events = what};
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t left_us = deadline_us - (now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000);
    int ready = left_us > 0 ? poll(&watched, 1, (int)(left_us / 1000 + 1)) : 0;
    return ready > 0 ? 0 : ready < 0 ? errno : ETIMEDOUT;
}

static int ask(int fd, const struct sockaddr_in *peer, int64_t deadline_us, char answer[64]) {
    int number = 0;
    socklen_t length = sizeof number;
    if (connect(fd, (const struct sockaddr *)peer, sizeof *peer) != 0 && errno != EINPROGRESS)
        return errno;
    int code = wait_for(fd, POLLOUT, deadline_us);
    if (code == 0 && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length) != 0 || number != 0))
        code = number != 0 ? number : errno;
    if (code == 0 && send(fd, "PING\n", 5, MSG_NOSIGNAL) != 5)
        code = errno;
    if (code == 0)
        code = wait_for(fd, POLLIN, deadline_us);
    ssize_t got = code == 0 ? recv(fd, answer, 63, 0) : -1;
    answer[got > 0 ? got : 0] = '\0';
    return code != 0 ? code : got < 0 ? errno : got == 0 ? ECONNRESET : 0;
}

static char answer[64];
static void ping(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    hf_classify_errno(fd < 0 ? errno : ask(fd, user, deadline_us, answer), outcome);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7))};
    struct hf_downstream *echo = NULL;
    struct hf_guard_options options;
    struct hf_outcome *outcome = hf_outcome_new();
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hf_guard_options_init(&options);
    options.repeatable = true; /* a question, asked twice, does no harm */
    if (outcome && hf_downstream_new("echo", NULL, &echo, NULL) == 0 && hf_guard_run_with(echo, &options, ping, outcome, &peer) == 0)
        printf("%s after %u attempts: %s", hf_outcome_kind_name(hf_outcome_get_kind(outcome)), hf_outcome_get_attempts(outcome), answer);
    int ok = echo && hf_outcome_get_kind(outcome) == HF_OUTCOME_SUCCESS;
    hf_outcome_free(outcome);
    hf_downstream_unref(echo);
    return !ok;
}
