/* SPDX-License-Identifier: MIT */
/*
 * Makes log lines and hands them to the sink; the default sink writes JSON lines to stderr. Must never change what the
 * rest does: every failure in here (no memory, a full disk, a closed pipe) loses the line and nothing else, errno stays
 * as it was, and no lock is held while a sink of the host runs. Any thread.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sigpipe.h"
#include "base/text.h"

#define TEXT_MAX 4000
#define LINE_MAX_BYTES ((size_t)256 * 1024)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `sink` and `sink_user` */
static hf_log_fn sink;                                   /* NULL: stderr */
static void *sink_user;
static atomic_int threshold = HF_LOG_INFO;
static pthread_mutex_t stderr_lock = PTHREAD_MUTEX_INITIALIZER; /* keeps long lines whole */

void hf_log_set(enum hf_log_level level, hf_log_fn fn, void *user) {
    pthread_mutex_lock(&lock);
    sink = fn;
    sink_user = user;
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool hfi_log_wants(enum hf_log_level level) {
    return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

static void write_all(struct iovec *parts, int count) {
    while (count > 0) {
        ssize_t written = writev(STDERR_FILENO, parts, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        while (count > 0 && (size_t)written >= parts->iov_len) {
            written -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
}

/* A stderr whose reader is gone must not kill the host. */
static void write_quietly(struct iovec *parts, int count) {
    struct hfi_sigpipe saved;
    hfi_sigpipe_block(&saved);
    pthread_mutex_lock(&stderr_lock);
    write_all(parts, count);
    pthread_mutex_unlock(&stderr_lock);
    hfi_sigpipe_restore(&saved);
}

static void write_stderr(enum hf_log_level level, const char *event, const char *fields) {
    static const char *const names[] = {"debug", "info", "warning", "error"};
    char time[HFI_RFC3339_LENGTH];
    char head[256];
    hfi_rfc3339(hfi_wall_now().us, time);
    int length = snprintf(head, sizeof head, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%.120s\"%s", time,
                          names[level > HF_LOG_ERROR ? HF_LOG_ERROR : level], event, fields[1] == '}' ? "" : ",");
    struct iovec parts[] = {
        {head, (size_t)length},
        {(void *)(uintptr_t)(fields + 1), strlen(fields + 1)},
        {(void *)(uintptr_t) "\n", 1},
    };
    write_quietly(parts, 3);
}

/* At most TEXT_MAX bytes, not inside a code point. */
static size_t cut(const char *text) {
    size_t length = strnlen(text, TEXT_MAX);
    for (int back = 0; back < 3 && length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80; back++)
        length--;
    return length;
}

static void print_fields(struct hfi_bytes *line, va_list *arguments) {
    const char *name;
    hfi_bytes_text(line, "{");
    for (bool first = true; (name = va_arg(*arguments, const char *)) != NULL; first = false) {
        hfi_bytes_print(line, "%s\"%s\":", first ? "" : ",", name + 1);
        if (name[0] == 'i') {
            hfi_bytes_print(line, "%lld", va_arg(*arguments, long long));
        } else if (name[0] == 'b') {
            hfi_bytes_text(line, va_arg(*arguments, int) ? "true" : "false");
        } else {
            const char *text = va_arg(*arguments, const char *);
            hfi_bytes_json_n(line, text, text ? cut(text) : 0);
        }
    }
    hfi_bytes_text(line, "}");
}

static void emit(enum hf_log_level level, const char *event, const char *fields) {
    pthread_mutex_lock(&lock);
    hf_log_fn fn = sink;
    void *user = sink_user;
    pthread_mutex_unlock(&lock);
    if (fn)
        fn(level, event, fields, user);
    else
        write_stderr(level, event, fields);
}

int hf_log_write(enum hf_log_level level, const char *event, const char *fields) {
    size_t length = fields ? strlen(fields) : 0;
    if (!event || length < 2 || fields[0] != '{' || fields[length - 1] != '}' || strpbrk(fields, "\r\n"))
        return HF_EINVAL;
    if (hfi_log_wants(level))
        emit(level, event, fields);
    return 0;
}

void hfi_log(enum hf_log_level level, const char *event, ...) {
    if (!hfi_log_wants(level))
        return;
    int saved_errno = errno;
    struct hfi_bytes line;
    va_list arguments;
    hfi_bytes_init(&line, LINE_MAX_BYTES);
    va_start(arguments, event);
    print_fields(&line, &arguments);
    va_end(arguments);
    /* Without memory the event still goes out, so that nothing dies silently. */
    emit(level, event, line.failed ? "{\"fields_lost\":true}" : line.data);
    hfi_bytes_free(&line);
    errno = saved_errno;
}
