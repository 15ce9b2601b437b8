/* SPDX-License-Identifier: MIT */
/* What only the loop on libuv must keep: real sockets, signals, sleep. */
#include "support/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/error.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

static struct hfi_scheduler *s;

static int set_up(void **state) {
    (void)state;
    return hfi_loop_new(&s);
}
static int tear_down(void **state) {
    (void)state;
    if (s)
        s->ops->close(s);
    s = NULL;
    return 0;
}

/* A socket whose connect is being refused: bound, closed, so that nobody listens. */
static int refused_socket(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(holder, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(holder, (struct sockaddr *)&address, &length), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int code = connect(fd, (struct sockaddr *)&address, sizeof address);
    assert_true(code == 0 || errno == EINPROGRESS || errno == ECONNREFUSED);
    close(holder);
    return fd;
}

static struct {
    unsigned first;
    int reports;
    int wanted;
} broken;

static void on_broken(struct hfi_watch *watch, unsigned events, void *user) {
    (void)watch;
    (void)user;
    if (broken.reports == 0)
        broken.first = events;
    if (++broken.reports == broken.wanted)
        s->ops->stop(s);
}

/* libuv reports a refused socket as status UV_EBADF without events, once, and stops polling it. */
static void a_refused_socket_is_broken_and_stays_watched(void **state) {
    (void)state;
    struct hfi_watch *watch;
    int fd = refused_socket();
    memset(&broken, 0, sizeof broken);
    broken.wanted = 3; /* nobody reads the error: it is reported again */
    assert_int_equal(s->ops->watch(s, fd, HFI_WRITABLE, on_broken, NULL, &watch), 0);
    assert_int_equal(s->ops->run(s), 0);
    assert_int_equal(broken.reports, 3);
    assert_true(broken.first & HFI_BROKEN);
    s->ops->unwatch(s, watch);
    close(fd);
}

static void drop_it(struct hfi_watch *watch, unsigned events, void *user) {
    int *fd = user;
    assert_true(events != 0);
    s->ops->unwatch(s, watch);
    close(*fd); /* right after unwatch, as libcurl does */
    *fd = -1;
    s->ops->stop(s);
}

static void a_broken_socket_may_be_dropped_inside_its_report(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct hfi_watch *watch;
        int fd = refused_socket();
        assert_int_equal(s->ops->watch(s, fd, HFI_READABLE | HFI_WRITABLE, drop_it, &fd, &watch), 0);
        assert_int_equal(s->ops->run(s), 0);
        assert_int_equal(fd, -1);
    }
}

static void pause_it(struct hfi_watch *watch, unsigned events, void *user) {
    int *reports = user;
    assert_true(events & HFI_BROKEN);
    ++*reports;
    s->ops->change(s, watch, 0);
}
static void stop_now(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    s->ops->stop(s);
}
static void stop_in(int64_t us) {
    static struct hfi_timer timer;
    hfi_timer_init(&timer, stop_now, NULL);
    assert_int_equal(s->ops->arm(s, &timer, (struct hf_mono){s->ops->mono(s).us + us}), 0);
    assert_int_equal(s->ops->run(s), 0);
}

static void a_broken_socket_nobody_asks_about_is_quiet(void **state) {
    (void)state;
    struct hfi_watch *watch;
    int reports = 0;
    int fd = refused_socket();
    assert_int_equal(s->ops->watch(s, fd, HFI_WRITABLE, pause_it, &reports, &watch), 0);
    stop_in(20000);
    assert_int_equal(reports, 1);
    s->ops->unwatch(s, watch);
    close(fd);
}

static void a_regular_file_cannot_be_watched(void **state) {
    (void)state;
    struct hfi_watch *watch = NULL;
    int fd = open(hf_test_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(s->ops->watch(s, fd, HFI_READABLE, on_broken, NULL, &watch), HF_ENOTSUP);
    close(fd);
    assert_int_equal(s->ops->watch(s, fd, HFI_READABLE, on_broken, NULL, &watch), HF_EINVAL);
    assert_null(watch);
}

static void write_to_nobody(struct hfi_task *task, void *user) {
    int *code = user;
    int ends[2];
    (void)task;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        close(ends[0]);
        *code = write(ends[1], "x", 1) < 0 ? errno : 0;
        close(ends[1]);
    }
    s->ops->stop(s);
}

static void sigpipe_stays_away_from_the_loop(void **state) {
    (void)state;
    int code = 0;
    sigset_t mask, pending;
    struct hfi_task task = {write_to_nobody, &code, NULL};
    s->ops->post(s, &task);
    assert_int_equal(s->ops->run(s), 0);
    assert_int_equal(code, EPIPE);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGPIPE)); /* the host's mask is back, and nothing waits behind it */
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
}

/* Slowness can only lower this count: a sleeper that wakes up often gives up the processor as often. */
static void it_sleeps_until_something_happens(void **state) {
    (void)state;
    struct rusage before, after;
    stop_in(1000); /* first uses */
    getrusage(RUSAGE_THREAD, &before);
    stop_in(300000);
    getrusage(RUSAGE_THREAD, &after);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 5);
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void no_descriptors_left(void **state) {
    (void)state;
    struct rlimit limit, low;
    struct hfi_scheduler *other = NULL;
    int before = open_descriptors();
    int free_fd = dup(0);
    close(free_fd);
    getrlimit(RLIMIT_NOFILE, &limit);
    low = limit;
    int refusals = 0;
    int code = HF_EIO;
    for (int n = 0; n < 20 && code != 0; n++) { /* first none, then one more each time */
        low.rlim_cur = (rlim_t)(free_fd + n);
        setrlimit(RLIMIT_NOFILE, &low);
        code = hfi_loop_new(&other);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (code != 0) {
            assert_int_equal(code, HF_EIO);
            assert_null(other);
            refusals++;
        }
    }
    assert_int_equal(code, 0);
    assert_true(refusals > 0);
    other->ops->close(other);
    assert_int_equal(open_descriptors(), before + 2); /* libuv keeps its signal pipe; nothing else is left */
}

static void *run_it(void *user) {
    (void)user;
    s->ops->run(s);
    return NULL;
}
struct ask {
    struct hfi_task task;
    bool on_thread;
};
static void ask(struct hfi_task *task, void *user) {
    (void)task;
    ((struct ask *)user)->on_thread = s->ops->on_thread(s);
    s->ops->stop(s);
}

static void any_one_thread_may_run_it(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        struct ask question = {{ask, &question, NULL}, false};
        assert_int_equal(pthread_create(&thread, NULL, run_it, NULL), 0);
        assert_false(s->ops->on_thread(s));
        s->ops->post(s, &question.task);
        pthread_join(thread, NULL);
        assert_true(question.on_thread);
    }
}

enum { MANY = HFI_LOOP_EVENTS + 8 };
static struct {
    struct hfi_timer timer;
    int events, turns, told[MANY];
} turn;

static void one_event(struct hfi_watch *watch, unsigned events, void *user) {
    static const struct hf_mono at_once;
    (void)user;
    assert_true(events & HFI_READABLE);
    s->ops->unwatch(s, watch);
    turn.events++;
    if (!hfi_timer_armed(&turn.timer))
        assert_int_equal(s->ops->arm(s, &turn.timer, at_once), 0);
}
static void tell_turn(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    turn.told[turn.turns++] = turn.events;
    if (turn.events == MANY)
        s->ops->stop(s);
}

/* Whoever has many descriptors does the same for all of them together, and none of them waits for hundreds of others. */
static void what_is_asked_for_now_comes_once_in_a_turn(void **state) {
    (void)state;
    int fds[MANY];
    struct hfi_watch *watches[MANY];
    memset(&turn, 0, sizeof turn);
    hfi_timer_init(&turn.timer, tell_turn, NULL);
    for (int i = 0; i < MANY; i++) {
        fds[i] = eventfd(1, EFD_CLOEXEC);
        assert_int_equal(s->ops->watch(s, fds[i], HFI_READABLE, one_event, NULL, &watches[i]), 0);
    }
    assert_int_equal(s->ops->run(s), 0);
    assert_int_equal(turn.turns, 2);
    assert_int_equal(turn.told[0], HFI_LOOP_EVENTS);
    assert_int_equal(turn.told[1], MANY);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            no_descriptors_left), /* with the first loop of the process: libuv makes its signal pipe then */
        cmocka_unit_test_setup_teardown(a_refused_socket_is_broken_and_stays_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_socket_may_be_dropped_inside_its_report, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_socket_nobody_asks_about_is_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_regular_file_cannot_be_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sigpipe_stays_away_from_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_sleeps_until_something_happens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_one_thread_may_run_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_asked_for_now_comes_once_in_a_turn, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
