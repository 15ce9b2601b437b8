/* SPDX-License-Identifier: MIT */
/*
 * The thread of the watchdog: asks the loop for a sign of life each round, looks at every pulse, says what it finds and
 * calls `hung`. A thread of C cannot be ended and begun again with what it holds, so no loop is restarted here: the
 * process is, by whoever supervises it. Must never wait for a lock that a loop may hold while it hangs.
 */
#include "assembly/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

struct watched {
    const char *name;
    const struct hfi_pulse *pulse;
    struct hfi_watched state;
};

struct hfi_watchdog {
    struct hfi_scheduler *loop;
    struct hfi_watchdog_limits limits;
    hf_hung_fn hung;
    void *user;
    struct hfi_pulse pulse; /* of the loop: beaten by `ask` */
    struct hfi_task ask;
    _Atomic bool asked;
    struct watched *loops;
    size_t count;
    _Atomic uint64_t late, missed;
    pthread_t thread;
    pthread_mutex_t lock; /* of over */
    pthread_cond_t ended;
    bool over, started;
};

static void answered(struct hfi_task *task, void *user) {
    struct hfi_watchdog *dog = user;
    (void)task;
    atomic_store(&dog->asked, false);
    hfi_pulse_beat(&dog->pulse);
}

static void read_line(int thread, const char *file, char *text, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, room - 1) : -1;
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* What is to be said, apart from everything: the loop may hang in its own log line, with nobody reading what we write. */
struct message {
    enum hfi_watchdog_word word;
    char loop[128], state[2], where[64], call[160];
    int thread;
    int64_t silent_ms;
};

static void *say(void *user) {
    struct message *message = user;
    if (message->word == HFI_WATCHDOG_BACK)
        hfi_log(HF_LOG_WARNING, "loop.back", HFI_S("loop", message->loop), NULL);
    else
        hfi_log(HF_LOG_ERROR, message->word == HFI_WATCHDOG_HUNG ? "loop.hung" : "loop.late", HFI_S("loop", message->loop),
                HFI_I("silent_ms", message->silent_ms), HFI_I("thread", message->thread), HFI_S("state", message->state),
                HFI_S("in", message->where), HFI_S("syscall", message->call), NULL);
    hfi_free(message);
    return NULL;
}

/* Where the kernel has it: running, or asleep in which call. Its own stack cannot be read from beside it. */
static void find(struct message *message) {
    char status[512];
    read_line(message->thread, "stat", status, sizeof status);
    read_line(message->thread, "wchan", message->where, sizeof message->where);
    read_line(message->thread, "syscall", message->call, sizeof message->call);
    const char *name_end = strrchr(status, ')'); /* "1234 (hf-writer) S …" */
    message->state[0] = name_end && name_end[1] == ' ' ? name_end[2] : '?';
}

static void tell(const struct watched *loop, enum hfi_watchdog_word word) {
    struct message *message = hfi_alloc(sizeof *message);
    pthread_t speaker;
    if (message == NULL)
        return;
    message->word = word;
    message->thread = atomic_load(&loop->pulse->thread);
    message->silent_ms = loop->state.silent_us / 1000;
    snprintf(message->loop, sizeof message->loop, "%s", loop->name);
    find(message);
    if (pthread_create(&speaker, NULL, say, message) == 0)
        pthread_detach(speaker);
    else
        hfi_free(message);
}

static void look_at(struct hfi_watchdog *dog, struct watched *loop, struct hf_mono now) {
    enum hfi_watchdog_word word = hfi_watched_look(&loop->state, &dog->limits, loop->pulse, now);
    switch (word) {
    case HFI_WATCHDOG_FINE:
    case HFI_WATCHDOG_STILL:
        return;
    case HFI_WATCHDOG_BACK:
        atomic_fetch_sub(&dog->late, 1);
        break;
    case HFI_WATCHDOG_LATE:
        atomic_fetch_add(&dog->late, 1);
        atomic_fetch_add(&dog->missed, 1);
        break;
    case HFI_WATCHDOG_AGAIN:
        atomic_fetch_add(&dog->missed, 1);
        break;
    case HFI_WATCHDOG_HUNG:
        break;
    }
    tell(loop, word);
    if (word == HFI_WATCHDOG_HUNG && dog->hung)
        dog->hung(loop->name, dog->user);
}

static void round_of(struct hfi_watchdog *dog) {
    struct hf_mono now = dog->loop->ops->mono(dog->loop);
    for (size_t i = 0; i < dog->count; i++)
        look_at(dog, &dog->loops[i], now);
    if (!atomic_exchange(&dog->asked, true))
        dog->loop->ops->post(dog->loop, &dog->ask);
}

static void *watch(void *user) {
    struct hfi_watchdog *dog = user;
    pthread_mutex_lock(&dog->lock);
    while (!dog->over) {
        pthread_mutex_unlock(&dog->lock);
        round_of(dog);
        struct hf_mono at = hfi_mono_after_ms(dog->loop->ops->mono(dog->loop), hfi_watchdog_round_ms(&dog->limits));
        struct timespec until = {.tv_sec = at.us / 1000000, .tv_nsec = at.us % 1000000 * 1000};
        pthread_mutex_lock(&dog->lock);
        while (!dog->over && dog->loop->ops->mono(dog->loop).us < at.us)
            pthread_cond_timedwait(&dog->ended, &dog->lock, &until);
    }
    pthread_mutex_unlock(&dog->lock);
    return NULL;
}

int hfi_watchdog_new(const struct hf_runner_options *options, struct hfi_scheduler *loop, struct hfi_watchdog **out) {
    *out = NULL;
    if (options->watchdog_ms <= 0)
        return 0;
    struct hfi_watchdog *dog = hfi_alloc(sizeof *dog);
    if (dog == NULL)
        return HF_ENOMEM;
    pthread_condattr_t monotonic;
    dog->loop = loop;
    dog->limits = (struct hfi_watchdog_limits){.deadline_ms = options->watchdog_ms, .grace_ms = options->watchdog_grace_ms};
    dog->hung = options->hung;
    dog->user = options->life_user;
    dog->ask.run = answered;
    dog->ask.user = dog;
    pthread_mutex_init(&dog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&dog->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int code = hfi_watchdog_add(dog, "runner", &dog->pulse);
    if (code != 0)
        hfi_watchdog_free(dog);
    else
        *out = dog;
    return code;
}

int hfi_watchdog_add(struct hfi_watchdog *dog, const char *name, const struct hfi_pulse *pulse) {
    if (dog == NULL)
        return 0;
    struct watched *grown = hfi_realloc(dog->loops, (dog->count + 1) * sizeof *grown);
    if (grown == NULL)
        return HF_ENOMEM;
    dog->loops = grown;
    dog->loops[dog->count++] = (struct watched){.name = name, .pulse = pulse};
    return 0;
}

int hfi_watchdog_start(struct hfi_watchdog *dog) {
    sigset_t all, before;
    if (dog == NULL)
        return 0;
    for (size_t i = 0; i < dog->count; i++)
        hfi_watched_begin(&dog->loops[i].state, dog->loop->ops->mono(dog->loop));
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    dog->started = pthread_create(&dog->thread, NULL, watch, dog) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!dog->started)
        return HF_ENOMEM;
    pthread_setname_np(dog->thread, "hf-watchdog");
    return 0;
}

void hfi_watchdog_stop(struct hfi_watchdog *dog) {
    if (dog == NULL || !dog->started)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->over = true;
    pthread_cond_signal(&dog->ended);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    dog->started = false;
}

void hfi_watchdog_free(struct hfi_watchdog *dog) {
    if (dog == NULL)
        return;
    hfi_watchdog_stop(dog);
    pthread_cond_destroy(&dog->ended);
    pthread_mutex_destroy(&dog->lock);
    hfi_free(dog->loops);
    hfi_free(dog);
}

bool hfi_watchdog_healthy(const struct hfi_watchdog *dog) {
    return dog == NULL || atomic_load(&dog->late) == 0;
}

void hfi_watchdog_count(const struct hfi_watchdog *dog, struct hf_runner_counts *counts) {
    if (dog == NULL)
        return;
    counts->late_loops = atomic_load(&dog->late);
    counts->missed_beats = atomic_load(&dog->missed);
}
