/* SPDX-License-Identifier: MIT */
/*
 * Processes that mean no good, as jobs: none holds, floods or outlives its node. S0.1, S0.33, S2.7, I65, I66. And handlers in
 * processes of their own: this program once more, as `--isolated`, and as `--liar N` one that only looks like it.
 */
#include "exec_stage.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "holdfast/holdfast.h"
#include "jobs/kinds/exec.h"
#include "jobs/kinds/isolated_wire.h"

static int make_fifo(const char *path) {
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The write end of the FIFO is held by a process that should be gone: waits for it to be let go. */
static void await_end_of(int fd) {
    char byte;
    struct pollfd end = {.fd = fd, .events = POLLIN};
    for (;;) {
        assert_int_equal(poll(&end, 1, 30000), 1);
        ssize_t length = read(fd, &byte, 1);
        if (length == 0)
            return;
        assert_true(length > 0 || errno == EAGAIN);
    }
}

/* 64 KiB and more than a pipe holds, never read: no SIGPIPE, nobody waits. */
static void payload_may_be_ignored_while_it_runs(void **state) {
    (void)state;
    static char bytes[65536 + 1];
    for (size_t length = sizeof bytes - 2; length <= sizeof bytes; length++) {
        memset(bytes, 'p', sizeof bytes);
        job.payload = bytes;
        job.payload_length = length;
        run_script("echo unread");
        assert_result("unread\n", 7);
        hfi_ending_free(&work.ending);
        ends = 0;
        prepare(&work);
        run_script("head -c 1 >/dev/null; exec <&-; echo closed");
        assert_result("closed\n", 7);
        hfi_ending_free(&work.ending);
        ends = 0;
        prepare(&work);
    }
}

static void closed_outputs_are_no_end(void **state) {
    (void)state;
    run_script("exec >&- 2>&-; sleep 0.05; exit 7");
    assert_failed("exit.7", HF_RESULT_FAILED);
}

static void flood_that_ignores_term_is_killed_S2_7(void **state) {
    (void)state;
    type.options.kill_grace_ms = 20;
    run_and_stop("trap '' TERM; echo flood >&2; echo >$READY; while :; do echo flood; echo flood >&2; done");
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    assert_non_null(work.ending.detail);
    assert_true(strlen(work.ending.detail) <= HFI_DETAIL_MAX);
}

/* Stopped, it hears no TERM; KILL needs no hearing. */
static void one_that_stopped_itself_is_killed(void **state) {
    (void)state;
    type.options.kill_grace_ms = 20;
    run_and_stop("trap '' TERM; echo >$READY; kill -STOP $$; exit 0");
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
}

/* The payload is sealed: not even its own process can change what another reader of it would see. */
static void the_payload_cannot_be_written(void **state) {
    (void)state;
    job.payload = "as it was";
    job.payload_length = 9;
    run_script("(echo changed >/proc/self/fd/0 || echo longer >>/proc/self/fd/0) 2>/dev/null; cat");
    assert_result("as it was", 9);
}

/* Five at once, each two sessions deep, some of them perhaps not there yet: the mark is on all of them. */
static void nobody_talks_its_way_out_of_a_stop(void **state) {
    (void)state;
    int end = make_fifo(hf_test_path("alive"));
    char text[600];
    type.options.kill_grace_ms = 20;
    snprintf(text, sizeof text, "trap '' TERM HUP; for i in 1 2 3 4 5; do setsid setsid sh -c 'exec sleep 1000' >%s 2>&1 </dev/null & done; "
             "echo >$READY; exec sleep 1000", hf_test_path("alive"));
    run_and_stop(text);
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    await_end_of(end);
    close(end);
}

/* Grandchildren in the group die with it, also when their parent ends first and they hold its pipes. */
static void group_that_holds_stdout_dies_at_the_limit(void **state) {
    (void)state;
    int64_t before = hfi_mono_now().us;
    run_script("(trap '' TERM; sleep 1000) & (trap '' TERM; exec sleep 1000) & echo done");
    assert_result("done\n", 5);
    assert_true(hfi_mono_now().us - before < INT64_C(900000000)); /* not by their own end */
}

static void nobody_but_the_payload_is_on_stdin_S0_33(void **state) {
    (void)state;
    static const char payload[] = "$(touch /tmp/no)\n`id`\0;exit 1\n";
    job.payload = payload;
    job.payload_length = sizeof payload - 1;
    set_command("/bin/cat", NULL, NULL);
    go();
    assert_result(payload, sizeof payload - 1);
}

/* 3.6, 3.11: a session of its own and closed pipes do not help who forked away from an execution that was stopped. */
static void who_forked_away_dies_at_the_limit(void **state) {
    (void)state;
    char text[512];
    const char *alive = hf_test_path("alive");
    int fd = make_fifo(alive);
    job.epoch = 3;
    type.options.kill_grace_ms = 20;
    snprintf(text, sizeof text, "trap '' TERM; setsid sh -c \"trap '' TERM HUP; echo >$READY; exec sleep 1000\" >%s 2>&1 </dev/null & "
             "exec sleep 1000", alive);
    run_and_stop(text);
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    await_end_of(fd);
    close(fd);
}

/* It ended well, but somebody of another session holds its stdout: that one is ended, and only that execution's. */
static void who_holds_stdout_from_another_session_is_ended(void **state) {
    (void)state;
    char text[512];
    const char *alive = hf_test_path("held");
    int end = make_fifo(alive), fd = open(alive, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(text, sizeof text, "setsid sh -c 'exec 7>%s; echo >&7; exec sleep 1000' & read line <%s; echo done", alive, alive);
    run_script(text);
    assert_result("done\n", 5);
    close(fd); /* ours, which only let the script read */
    await_end_of(end);
    close(end);
}

static void strange_programs_are_failures(void **state) {
    static const struct {
        const char *name, *content, *error_type;
    } cases[] = {{"empty", "", "exec.not_started"}, {"text", "no interpreter\n", "exec.not_started"},
                 {"lost", "#!/nonexistent/interpreter\n", "exec.not_found"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *path = hf_test_path(cases[i].name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].content, file);
        assert_int_equal(fclose(file) | chmod(path, 0700), 0);
        set_command(path, NULL, NULL);
        assert_int_not_equal(kind->ops->start(kind, &work), 0);
        assert_failed(cases[i].error_type, HF_RESULT_PERMANENT);
        assert_int_equal(work.ending.outcome.sent, HF_SENT_NO);
    }
    set_command("/tmp", NULL, NULL); /* a folder */
    assert_int_not_equal(kind->ops->start(kind, &work), 0);
    assert_failed("exec.not_permitted", HF_RESULT_PERMANENT);
}

/* I65, I66: the result is bytes, what is said about a failure is text. */
static void output_of_any_bytes_is_kept(void **state) {
    (void)state;
    run_script("printf 'a\\0b\\377\\376c'");
    assert_result("a\0b\377\376c", 6);
    hfi_ending_free(&work.ending);
    ends = 0;
    prepare(&work);
    run_script("printf 'a\\0b\\377\\n\\033[2Jc' >&2; exit 1");
    assert_failed("exit.1", HF_RESULT_FAILED);
    assert_true(hfi_text_valid(work.ending.detail, strlen(work.ending.detail)));
    assert_true(hfi_text_valid(work.ending.outcome.message, strlen(work.ending.outcome.message)));
}

/* ------------------------------------------------------------------ the handler, in its own process */

static int await_reader(void) {
    int fd = open(getenv("READY"), O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "\n", 1) == 1 ? close(fd) : -1;
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int why, codes[3], count;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void hears_why(struct hf_work *one, enum hf_stop why, void *user) {
    (void)user;
    pthread_mutex_lock(&heard.lock);
    heard.why = (int)why + (hf_work_is_cancelled(one) ? 0 : 100);
    pthread_cond_signal(&heard.moved);
    pthread_mutex_unlock(&heard.lock);
}

static enum hf_result waits_for_why(struct hf_work *one) {
    char text[40];
    hf_work_on_stop(one, hears_why, NULL);
    if (await_reader() != 0)
        return hf_work_failed(one, "test.reader", "nobody waits for it");
    pthread_mutex_lock(&heard.lock);
    while (heard.why == 0)
        pthread_cond_wait(&heard.moved, &heard.lock);
    snprintf(text, sizeof text, "told %d", heard.why);
    pthread_mutex_unlock(&heard.lock);
    return hf_work_permanent(one, "test.told", text);
}

static void hears_stored(int code, void *user) {
    (void)user;
    pthread_mutex_lock(&heard.lock);
    heard.codes[heard.count++ % 3] = code;
    pthread_cond_signal(&heard.moved);
    pthread_mutex_unlock(&heard.lock);
}

/* Three times without waiting, then killed; the next execution has what was last, from before its death. */
static enum hf_result checkpoints(struct hf_work *one) {
    static char big[HF_CHECKPOINT_MAX + 1];
    size_t length;
    const char *last = hf_work_last_checkpoint(one, &length);
    if (hf_work_execution(one) > 1)
        return hf_work_ok(one, last, length);
    hf_work_progress(one, 41, "soon dead");
    if (hf_work_checkpoint(one, big, sizeof big) != HF_ETOOBIG || hf_work_checkpoint(one, big, sizeof big - 1) != 0 ||
        hf_work_checkpoint_start(one, "a", 1, hears_stored, NULL) != 0 || hf_work_checkpoint_start(one, NULL, 0, hears_stored, NULL) != 0 ||
        hf_work_checkpoint_start(one, "half way", 8, hears_stored, NULL) != 0)
        return hf_work_permanent(one, "test.checkpoint", "refused");
    pthread_mutex_lock(&heard.lock);
    while (heard.count < 3)
        pthread_cond_wait(&heard.moved, &heard.lock);
    pthread_mutex_unlock(&heard.lock);
    if (heard.codes[0] | heard.codes[1] | heard.codes[2])
        return hf_work_permanent(one, "test.checkpoint", "not stored");
    raise(SIGKILL);
    return hf_work_ok(one, NULL, 0);
}

/* Without a client of its own, and with one. */
static enum hf_result calls(struct hf_work *one) {
    struct hf_downstream_options nobody = hf_downstream_at("nobody", "http://127.0.0.1:1");
    struct hf_request request = hf_request_to("nobody", "GET", "/");
    struct hf_response *response = NULL;
    struct hf_client *client = NULL;
    struct hf_error why;
    hf_error_init(&why);
    if (hf_work_client(one) || hf_work_call(one, &request, &response, &why) != HF_ENOENT || !strstr(why.fix, "hf_isolated_client") ||
        hf_client_new(&nobody, 1, &client, &why) != 0 || hf_isolated_client(one, client) != 0)
        return hf_work_permanent(one, "test.client", why.why);
    request.no_retry = true;
    enum hf_result result = hf_work_forward(one, &request);
    hf_client_close(client);
    return result;
}

static enum hf_result says(struct hf_work *one, const char *what) {
    static char big[65537];
    memset(big, 'x', sizeof big);
    if (strcmp(what, "huge") == 0)
        return hf_work_ok(one, big, sizeof big);
    if (strcmp(what, "full") == 0)
        return hf_work_ok(one, big, sizeof big - 1);
    if (strcmp(what, "long") == 0)
        return big[65536] = '\0', hf_work_cause(one, (hf_work_failed(one, "test.long", big), "test.inside"));
    if (strcmp(what, "unreadable") == 0)
        return hf_work_unreadable(one, "what is a quux?");
    if (strcmp(what, "snooze") == 0)
        return hf_work_execution(one) > 1 ? hf_work_ok(one, NULL, 0) : hf_work_snooze(one, 0);
    if (strcmp(what, "cancel") == 0)
        return hf_work_cancel(one, "no need");
    return hf_work_ok(one, what, strlen(what));
}

static enum hf_result isolated(struct hf_work *one, void *user) {
    char what[32] = "";
    size_t length;
    const char *payload = hf_work_payload(one, &length);
    memcpy(what, payload, length < 31 ? length : 31);
    (void)user;
    if (strcmp(what, "crash") == 0)
        signal(SIGSEGV, SIG_DFL), raise(SIGSEGV); /* whoever else listens for it, as sanitizers do */
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(what, "hang") == 0)
        for (signal(SIGTERM, SIG_IGN), await_reader();;)
            pause();
    if (strcmp(what, "silent") == 0)
        for (signal(SIGTERM, SIG_IGN);;)
            pause();
    if (strcmp(what, "beat") == 0)
        hf_work_heartbeat(one), raise(SIGKILL);
    if (strcmp(what, "why") == 0)
        return waits_for_why(one);
    if (strcmp(what, "checkpoints") == 0)
        return checkpoints(one);
    if (strcmp(what, "call") == 0)
        return calls(one);
    return says(one, what);
}

/* ------------------------------------------------------------------ its node, as far as the kind goes */

static void isolate(const char *payload) {
    job.payload = payload;
    job.payload_length = strlen(payload);
    set_command("/proc/self/exe", "--isolated", NULL);
    type.options.kind = HF_KIND_NATIVE;
    type.options.isolate = HF_ISOLATE_PROCESS;
}

static void again(void **state) {
    tear_down(state);
    set_up(state);
}

/* S0.1: every end is as it was said, and no crash, kill or huge word is one. */
static void isolated_ends_are_as_they_were_said(void **state) {
    static const struct {
        const char *payload, *error_type;
        enum hf_result result;
    } cases[] = {{"crash", "signal.SIGSEGV", HF_RESULT_FAILED}, {"kill", "signal.SIGKILL", HF_RESULT_FAILED},
                 {"huge", "result.too_big", HF_RESULT_PERMANENT}, {"unreadable", "payload.unreadable", HF_RESULT_UNREADABLE},
                 {"long", "test.long", HF_RESULT_FAILED}, {"full", "", HF_RESULT_OK}, {"plain", "", HF_RESULT_OK},
                 {"cancel", "", HF_RESULT_CANCEL}, {"snooze", "", HF_RESULT_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        isolate(cases[i].payload);
        go();
        assert_string_equal(work.ending.outcome.error_type, cases[i].error_type);
        assert_int_equal(work.ending.result, cases[i].result);
        assert_int_equal(work.ending.length, strcmp(cases[i].payload, "full") == 0 ? 65536 : strcmp(cases[i].payload, "plain") == 0 ? 5 : 0);
        if (strcmp(cases[i].payload, "long") == 0) {
            assert_int_equal(strlen(work.ending.detail), HFI_DETAIL_MAX);
            assert_string_equal(work.ending.cause, "test.inside");
        }
        again(state);
    }
}

/* S2.7: hears why, on a thread that is not the handler's; one that does not listen is killed. */
static void isolated_handlers_hear_of_a_stop(void **state) {
    isolate("why");
    run_and_stop_command("/proc/self/exe", "--isolated", NULL);
    assert_failed("test.told", HF_RESULT_PERMANENT);
    assert_string_equal(work.ending.outcome.message, "told 1"); /* HF_STOP_TIMEOUT */
    again(state);
    isolate("hang");
    type.options.kill_grace_ms = 20;
    run_and_stop_command("/proc/self/exe", "--isolated", NULL);
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
}

/* C10 */
static void an_isolated_heartbeat_arrives(void **state) {
    (void)state;
    isolate("beat");
    type.options.heartbeat_timeout_ms = 1000;
    assert_int_equal(kind->ops->start(kind, &work), 0);
    int64_t begun = atomic_load(&work.beat_us);
    loop->ops->run(loop);
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    assert_true(atomic_load(&work.beat_us) > begun);
}

static void an_isolated_handler_calls_with_a_client_of_its_own(void **state) {
    (void)state;
    isolate("call");
    go();
    assert_string_equal(work.ending.outcome.error_type, "curl.couldnt_connect");
    assert_int_equal(atomic_load(&work.attempts), 1);
    assert_false(atomic_load(&work.may_have_sent)); /* and that is proof */
}

/* What says something else than a handler is killed, and is no end, whatever its exit status. */
static void liars_are_killed(void **state) {
    static const char *const why[] = {"something else", "something else", "another version", "something else", "something else",
                                      "after its end", "none that a handler can say", "none that a handler can say", NULL, NULL,
                                      "something else", "reads no answers"};
    for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
        char number[8];
        snprintf(number, sizeof number, "%zu", i);
        isolate("x");
        set_command("/proc/self/exe", "--liar", number);
        go();
        assert_failed(why[i] ? "isolated.protocol" : "isolated.no_end", HF_RESULT_FAILED);
        if (why[i] && !strstr(work.ending.outcome.message, why[i]))
            fail_msg("%zu: %s", i, work.ending.outcome.message);
        again(state);
    }
    script("yes 'this is no frame'");
    type.options.isolate = HF_ISOLATE_PROCESS;
    go();
    assert_failed("isolated.protocol", HF_RESULT_FAILED);
}

static void put(uint32_t kind_of, uint32_t length, const void *body, size_t given) {
    struct hfi_frame_head head = {kind_of, length};
    if (write(1, &head, sizeof head) < 0 || write(1, body, given) < 0)
        _exit(9);
}

static int lie(int number) {
    static struct hfi_frame_end end;
    static char much[65536];
    struct hfi_frame_hello hello;
    memset(&hello, 0, sizeof hello);
    snprintf(hello.magic, sizeof hello.magic, "%s", HFI_ISOLATED_MAGIC);
    hello.protocol = HFI_ISOLATED_PROTOCOL + (number == 2);
    end.result = HF_RESULT_OK;
    if (number == 0)
        return write(1, "Content-Type: text/html\r\n\r\n", 27) > 0 ? 0 : 9;
    if (number != 1)
        put(HFI_FRAME_HELLO, sizeof hello, &hello, sizeof hello);
    if (number == 1) /* no greeting */
        put(HFI_FRAME_END, sizeof end, &end, sizeof end);
    if (number == 3)
        put(HFI_FRAME_CHECKPOINT, UINT32_MAX, much, sizeof much);
    if (number == 4)
        put(99, 0, much, 0);
    if (number == 5)
        for (int i = 0; i < 2; i++)
            put(HFI_FRAME_END, sizeof end, &end, sizeof end);
    end.result = number == 6 ? 0x4807 : HF_RESULT_OK;
    end.result_length = number == 7 ? UINT64_MAX : 0;
    if (number == 6 || number == 7)
        put(HFI_FRAME_END, sizeof end, &end, sizeof end);
    if (number == 8) /* half of one */
        put(HFI_FRAME_END, sizeof end, &end, sizeof end / 2);
    if (number == 9)
        put(HFI_FRAME_HEARTBEAT, 0, much, 0);
    if (number == 10) /* as the node */
        put(HFI_FRAME_STOP, 4, much, 4);
    if (number != 11)
        return 0;
    for (uint64_t i = 0;; i++) { /* asks for ever, reads nothing */
        struct hfi_frame_head head = {HFI_FRAME_CHECKPOINT, sizeof i};
        if (write(1, &head, sizeof head) < 0 || write(1, &i, sizeof i) < 0)
            return 0;
    }
}

/* ------------------------------------------------------------------ and with a store */

static int64_t enqueue(struct hf_store *store, const char *name, const char *payload) {
    struct hf_job_spec spec = hf_job_of(name, payload);
    if (strcmp(name, "watched") == 0)
        spec.max_executions = 1; /* how soon a second one would speak is the machine's affair */
    struct hf_error error;
    int64_t id;
    hf_error_init(&error);
    if (hf_enqueue(store, &spec, &id, NULL, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    return id;
}

/* S1.7: a checkpoint of a process that is killed a moment later is there for the next; C10: a silent one is ended. */
static void isolated_words_reach_the_store(void **state) {
    static const char *const own[] = {"/proc/self/exe", "--isolated"};
    static const struct hf_curve_options curve = {.size = sizeof curve, .max_executions = 3, .curve_ms = {1}, .curve_length = 1};
    struct hf_runner_options options;
    struct hf_runner *runner = NULL;
    struct hf_store *store = NULL;
    struct hf_job *seen = NULL;
    struct hf_error error;
    char url[512];
    (void)state;
    hf_error_init(&error);
    snprintf(url, sizeof url, "sqlite:%s", hf_test_path("isolated.db"));
    assert_int_equal(hf_store_open(url, NULL, &store, &error), 0);
    hf_runner_options_init(&options);
    options.until_idle = true;
    options.curve = &curve;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
    struct hf_type_options native = hf_type_native("own");
    native.isolate = HF_ISOLATE_PROCESS;
    native.command = own;
    native.command_length = 2;
    assert_int_equal(hf_runner_register(runner, &native, isolated, NULL, &error), 0);
    native.name = "watched";
    native.heartbeat_timeout_ms = 400;
    assert_int_equal(hf_runner_register(runner, &native, isolated, NULL, &error), 0);
    int64_t ids[] = {enqueue(store, "own", "checkpoints"), enqueue(store, "own", "unreadable"), enqueue(store, "own", "snooze"),
                     enqueue(store, "own", "cancel"), enqueue(store, "watched", "silent")};
    static const enum hf_job_state states[] = {HF_JOB_SUCCEEDED, HF_JOB_QUARANTINED, HF_JOB_SUCCEEDED, HF_JOB_CANCELLED, HF_JOB_DEAD};
    static const unsigned executions[] = {2, 0, 2, 1, 1};
    assert_int_equal(hf_runner_run(runner, &error), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(hf_store_get_job(store, ids[i], &seen, &error), 0);
        const struct hf_job_view *view = hf_job_look(seen);
        assert_int_equal(view->state, states[i]);
        assert_int_equal(view->executions, executions[i]);
        if (i == 0) {
            assert_int_equal(view->progress, 41);
            assert_int_equal(view->result_length, 8);
            assert_memory_equal(view->result, "half way", 8);
        }
        if (i == 4)
            assert_string_equal(hf_job_history_at(seen, 0)->error_type, "heartbeat.lapsed");
        hf_job_free(seen);
    }
    hf_runner_free(runner);
    hf_store_close(store);
}

/* A child that fails before its own descriptors are in place says so on its pipe, not into a file that the node has there. */
static void a_child_that_fails_early_writes_to_no_file_of_the_node(void **state) {
    char name[] = "/bin/true", *program[] = {name, NULL}, *variables[] = {NULL};
    const char *path = hf_test_path("database");
    struct hf_type_options options;
    struct stat about;
    pid_t pid = 0;
    (void)state;
    hf_type_options_init(&options);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), other = fcntl(3, F_DUPFD_CLOEXEC, 64);
    assert_true(file >= 0);
    if (file != 3)
        assert_int_equal(dup2(file, 3), 3);
    int out = hfi_lift(open("/dev/null", O_RDWR | O_CLOEXEC)), nobody = fcntl(out, F_DUPFD_CLOEXEC, 64);
    close(nobody); /* as its stdin: it cannot be moved to 0 */
    struct hfi_spawn spawn = {.command = program, .variables = variables, .directory = "/", .in = nobody, .out = out, .err = out};
    int code = hfi_spawn(&spawn, &options, &pid), seen = fstat(3, &about);
    if (other >= 0)
        dup2(other, 3), close(other);
    close(out);
    assert_int_equal(seen, 0);
    assert_int_equal(about.st_size, 0);
    assert_int_equal(code, EBADF);
    assert_int_equal(pid, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--isolated") == 0)
        return hf_isolated_run(isolated, NULL);
    if (argc == 3 && strcmp(argv[1], "--liar") == 0)
        return lie(atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        TEST(payload_may_be_ignored_while_it_runs),
        TEST(closed_outputs_are_no_end),
        TEST(flood_that_ignores_term_is_killed_S2_7),
        TEST(one_that_stopped_itself_is_killed),
        TEST(the_payload_cannot_be_written),
        TEST(nobody_talks_its_way_out_of_a_stop),
        TEST(group_that_holds_stdout_dies_at_the_limit),
        TEST(nobody_but_the_payload_is_on_stdin_S0_33),
        TEST(who_forked_away_dies_at_the_limit),
        TEST(who_holds_stdout_from_another_session_is_ended),
        TEST(strange_programs_are_failures),
        TEST(output_of_any_bytes_is_kept),
        cmocka_unit_test(a_child_that_fails_early_writes_to_no_file_of_the_node),
        TEST(isolated_ends_are_as_they_were_said),
        TEST(isolated_handlers_hear_of_a_stop),
        TEST(an_isolated_heartbeat_arrives),
        TEST(an_isolated_handler_calls_with_a_client_of_its_own),
        TEST(liars_are_killed),
        cmocka_unit_test(isolated_words_reach_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
