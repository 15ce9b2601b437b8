/* SPDX-License-Identifier: MIT */
/*
 * The thread of the watchdog: asks the loop for a sign of life each round, looks at every loop on the roll, says what it
 * finds with the stack of its thread, and calls `hung` for what cannot be begun again: the loop thread, the writer and
 * the relays hold connections and transactions that a thread of C cannot be made to let go, so the process ends, and its
 * supervisor begins anew. Must never wait for a lock that a loop may hold while it hangs.
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
#include "base/stack.h"

#define STACK_WAIT_MS 200 /* for a thread to write its stack down; one that hangs in the kernel does not */

struct hfi_watchdog {
    struct hfi_scheduler *loop;
    struct hfi_watchdog_limits limits;
    hf_hung_fn hung;
    void *user;
    struct hfi_pulse pulse; /* of the loop: beaten by `ask` */
    struct hfi_task ask;
    _Atomic bool asked;
    struct hfi_wards *wards;
    struct hfi_ward **added; /* those that only have a pulse of their own */
    size_t count;
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
    struct hfi_ward_word said;
    char state[2], where[64], call[160];
    void *frames[HFI_STACK_FRAMES];
    size_t frame_count;
    char stack[3000];
};

static const char *event_of(enum hfi_watchdog_word word) {
    return word == HFI_WATCHDOG_HUNG ? "loop.hung" : word == HFI_WATCHDOG_RESTARTED ? "loop.restarted" : "loop.late";
}

static void *say(void *user) {
    struct message *message = user;
    struct hfi_ward_word *said = &message->said;
    hfi_stack_print(message->frames, message->frame_count, message->stack, sizeof message->stack);
    if (said->word == HFI_WATCHDOG_BACK)
        hfi_log(HF_LOG_WARNING, "loop.back", HFI_S("loop", said->name), NULL);
    else
        hfi_log(HF_LOG_ERROR, event_of(said->word), HFI_S("loop", said->name), HFI_I("silent_ms", said->silent_ms),
                HFI_I("thread", said->thread), HFI_S("state", message->state), HFI_S("in", message->where),
                HFI_S("syscall", message->call), HFI_S("stack", message->stack), NULL);
    hfi_free(message);
    return NULL;
}

/* Where the kernel has it: running, or asleep in which call; and its own stack, if its thread answers. */
static void find(struct message *message) {
    char status[512];
    int thread = message->said.thread;
    read_line(thread, "stat", status, sizeof status);
    read_line(thread, "wchan", message->where, sizeof message->where);
    read_line(thread, "syscall", message->call, sizeof message->call);
    const char *name_end = strrchr(status, ')'); /* "1234 (hf-writer) S …" */
    message->state[0] = name_end && name_end[1] == ' ' ? name_end[2] : '?';
    message->frame_count = hfi_stack_of(thread, message->frames, STACK_WAIT_MS);
}

static void tell(const struct hfi_ward_word *said) {
    struct message *message = hfi_alloc(sizeof *message);
    pthread_t speaker;
    if (message == NULL)
        return;
    message->said = *said;
    if (said->word != HFI_WATCHDOG_BACK)
        find(message);
    if (pthread_create(&speaker, NULL, say, message) == 0)
        pthread_detach(speaker);
    else
        hfi_free(message);
}

static void round_of(struct hfi_watchdog *dog) {
    struct hfi_ward_word words[HFI_WARD_WORDS];
    size_t count = hfi_wards_look(dog->wards, &dog->limits, dog->loop->ops->mono(dog->loop), words);
    for (size_t i = 0; i < count; i++)
        tell(&words[i]);
    for (size_t i = 0; i < count; i++)
        if (words[i].word == HFI_WATCHDOG_HUNG && dog->hung)
            dog->hung(words[i].name, dog->user);
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
    int code = hfi_wards_new(&dog->wards);
    if (code != 0) {
        hfi_free(dog);
        return code;
    }
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
    code = hfi_watchdog_add(dog, "runner", &dog->pulse);
    if (code != 0)
        hfi_watchdog_free(dog);
    else
        *out = dog;
    return code;
}

int hfi_watchdog_add(struct hfi_watchdog *dog, const char *name, const struct hfi_pulse *pulse) {
    if (dog == NULL)
        return 0;
    void *grown = hfi_realloc(dog->added, (dog->count + 1) * sizeof *dog->added);
    if (grown == NULL)
        return HF_ENOMEM;
    dog->added = grown;
    struct hfi_ward *ward = hfi_alloc(sizeof *ward);
    if (ward == NULL)
        return HF_ENOMEM;
    snprintf(ward->name, sizeof ward->name, "%s", name);
    ward->pulse = pulse;
    dog->added[dog->count++] = ward;
    hfi_wards_add(dog->wards, ward);
    return 0;
}

struct hfi_wards *hfi_watchdog_wards(struct hfi_watchdog *dog) {
    return dog == NULL ? NULL : dog->wards;
}

int hfi_watchdog_start(struct hfi_watchdog *dog) {
    sigset_t all, before;
    if (dog == NULL)
        return 0;
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
    for (size_t i = 0; i < dog->count; i++) {
        hfi_wards_remove(dog->wards, dog->added[i]);
        hfi_free(dog->added[i]);
    }
    hfi_free(dog->added);
    hfi_wards_free(dog->wards);
    hfi_free(dog);
}

bool hfi_watchdog_healthy(const struct hfi_watchdog *dog) {
    struct hfi_wards_counts now = {0};
    if (dog != NULL)
        hfi_wards_count(dog->wards, &now);
    return now.late == 0;
}

void hfi_watchdog_count(const struct hfi_watchdog *dog, struct hf_runner_counts *counts) {
    struct hfi_wards_counts now = {0};
    if (dog != NULL)
        hfi_wards_count(dog->wards, &now);
    counts->late_loops = now.late;
    counts->missed_beats = now.missed;
    counts->restarted_loops = now.restarted;
}
