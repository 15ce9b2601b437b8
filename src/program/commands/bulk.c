/* SPDX-License-Identifier: MIT */
/*
 * Enqueues many jobs from NDJSON, 500 in one transaction. Must never half-do a chunk: a wrong line is named, its chunk is
 * not enqueued, and it is said how many lines before it were. The main thread's.
 */
#include "program/commands/bulk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program/output.h"
#include "program/progress.h"

#define CHUNK 500
#define LINE_MAX_BYTES (16u * 1024 * 1024)

struct bulk {
    struct hfi_session *session;
    const struct hfi_spec *defaults;
    const char *path;
    FILE *file;
    char *line;
    size_t line_room;
    struct hfi_arena arena; /* of the chunk */
    struct hfi_spec *specs;
    struct hf_job_spec *jobs;
    json_t *objects[CHUNK];
    int numbers[CHUNK]; /* lines in the file */
    size_t count;
    int line_number;
    int64_t ids[CHUNK], first_id, last_id;
    bool existed[CHUNK];
    uint64_t enqueued, known; /* known: a unique key or a source message that was there already */
    struct hfi_progress progress;
};

static void forget_chunk(struct bulk *bulk) {
    for (size_t i = 0; i < bulk->count; i++)
        json_decref(bulk->objects[i]);
    hfi_arena_free(&bulk->arena);
    bulk->count = 0;
}

static int complain(struct bulk *bulk, struct hf_error *error, int line) {
    snprintf(error->file, sizeof error->file, "%s", strcmp(bulk->path, "-") == 0 ? "stdin" : bulk->path);
    error->line = line;
    hfi_progress_end(&bulk->progress);
    int code = hfi_complain(error);
    /* Each chunk is a transaction: what came before stands. */
    fprintf(stderr, "holdfast: %llu jobs were enqueued before it, none of lines %d to %d\n",
            (unsigned long long)(bulk->enqueued - bulk->known),
            bulk->count > 0 ? bulk->numbers[0] : line, bulk->line_number);
    return code;
}

static int commit(struct bulk *bulk) {
    struct hf_error error;
    if (bulk->count == 0)
        return 0;
    for (size_t i = 0; i < bulk->count; i++) {
        hfi_spec_complete(&bulk->specs[i], &bulk->session->config);
        bulk->jobs[i] = bulk->specs[i].spec;
    }
    hf_error_init(&error);
    for (size_t i = 0; i < bulk->count; i++)
        if (hfi_spec_check_limit(&bulk->jobs[i], &bulk->session->config, &error) != 0)
            return complain(bulk, &error, bulk->numbers[i]);
    if (hf_enqueue_many(bulk->session->store, bulk->jobs, bulk->count, bulk->ids, bulk->existed, &error) != 0) {
        bool named = error.line >= 1 && (size_t)error.line <= bulk->count;
        if (named)
            hfi_spec_words(&bulk->specs[error.line - 1], false, &error);
        return complain(bulk, &error, named ? bulk->numbers[error.line - 1] : bulk->line_number);
    }
    bulk->first_id = bulk->first_id ? bulk->first_id : bulk->ids[0];
    bulk->last_id = bulk->ids[bulk->count - 1];
    for (size_t i = 0; i < bulk->count; i++)
        bulk->known += bulk->existed[i];
    bulk->enqueued += bulk->count;
    forget_chunk(bulk);
    return 0;
}

static int read_line(struct bulk *bulk, ssize_t length) {
    struct hf_error error;
    json_error_t wrong;
    struct hfi_spec *spec = &bulk->specs[bulk->count];
    hf_error_init(&error);
    error.code = HF_EINVAL;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *object = json_loadb(bulk->line, (size_t)length, flags, &wrong);
    /* Payloads keep their bytes, so an integer of any size is welcome there. */
    if (!object && json_error_code(&wrong) == json_error_numeric_overflow)
        object = json_loadb(bulk->line, (size_t)length, flags | JSON_DECODE_INT_AS_REAL, &wrong);
    if (!object) {
        error.column = wrong.column > 0 ? wrong.column : 1;
        snprintf(error.what, sizeof error.what, "line");
        snprintf(error.why, sizeof error.why, "%s", wrong.text);
        snprintf(error.fix, sizeof error.fix, "write one JSON object a line");
        return complain(bulk, &error, bulk->line_number);
    }
    *spec = *bulk->defaults;
    bulk->objects[bulk->count] = object;
    bulk->numbers[bulk->count++] = bulk->line_number;
    if (hfi_spec_from_json(spec, object, bulk->line, (size_t)length, &bulk->arena, &error) != 0)
        return complain(bulk, &error, bulk->line_number);
    return 0;
}

static bool blank(const char *line, ssize_t length) {
    while (length > 0 && strchr(" \t\r\n", line[length - 1]))
        length--;
    return length == 0;
}

/* Some editors begin a file with a byte order mark. */
static ssize_t drop_mark(char *line, ssize_t length) {
    if (length < 3 || memcmp(line, "\xef\xbb\xbf", 3) != 0)
        return length;
    memmove(line, line + 3, (size_t)length - 3);
    return length - 3;
}

/* getline would take any amount of memory for a file without line ends. */
static ssize_t next_line(struct bulk *bulk) {
    size_t length = 0;
    for (int byte = getc_unlocked(bulk->file); byte != EOF; byte = getc_unlocked(bulk->file)) {
        if (length + 1 >= bulk->line_room) {
            bulk->line_room = bulk->line_room ? bulk->line_room * 2 : 4096;
            bulk->line = hfi_grow(bulk->line, bulk->line_room);
        }
        bulk->line[length++] = (char)byte;
        if (byte == '\n' || length > LINE_MAX_BYTES)
            break;
    }
    return length > 0 ? (ssize_t)length : -1;
}

static int read_all(struct bulk *bulk, bool sized) {
    struct hf_error error;
    uint64_t bytes = 0;
    int code = 0;
    for (ssize_t length = next_line(bulk); code == 0 && length >= 0; length = next_line(bulk)) {
        bulk->line_number++;
        bytes += (uint64_t)length;
        if (length > (ssize_t)LINE_MAX_BYTES) {
            hf_error_init(&error);
            error.code = HF_ETOOBIG;
            snprintf(error.what, sizeof error.what, "line");
            snprintf(error.why, sizeof error.why, "it is longer than 16 MiB");
            return complain(bulk, &error, bulk->line_number);
        }
        length = bulk->line_number == 1 ? drop_mark(bulk->line, length) : length;
        code = blank(bulk->line, length) ? 0 : read_line(bulk, length);
        if (code == 0 && bulk->count == CHUNK)
            code = commit(bulk);
        hfi_progress_move(&bulk->progress, sized ? bytes / 1024 : bulk->enqueued);
        if (code != 0)
            return code;
    }
    if (ferror(bulk->file))
        return hfi_usage(bulk->path, NULL, "%s", strerror(errno));
    return commit(bulk);
}

static void print_end(const struct bulk *bulk) {
    if (!hfi_manner()->json) {
        if (bulk->known > 0)
            hfi_say("%llu jobs enqueued, %llu were there already", (unsigned long long)(bulk->enqueued - bulk->known),
                    (unsigned long long)bulk->known);
        else
            hfi_say("%llu jobs enqueued", (unsigned long long)bulk->enqueued);
        return;
    }
    json_t *object = json_object();
    hfi_json_number(object, "enqueued", (int64_t)(bulk->enqueued - bulk->known));
    hfi_json_number(object, "existed", (int64_t)bulk->known);
    hfi_json_number(object, "first_id", bulk->first_id);
    hfi_json_number(object, "last_id", bulk->last_id);
    hfi_print_json(object);
}

int hfi_bulk_enqueue(struct hfi_session *session, const char *path, const struct hfi_spec *defaults) {
    struct bulk *bulk = hfi_arena_alloc(&session->config.arena, sizeof *bulk);
    struct stat status;
    bulk->session = session;
    bulk->defaults = defaults;
    bulk->path = path;
    bulk->specs = hfi_arena_array(&session->config.arena, CHUNK, sizeof *bulk->specs);
    bulk->jobs = hfi_arena_array(&session->config.arena, CHUNK, sizeof *bulk->jobs);
    bulk->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!bulk->file)
        return hfi_usage(path, "check the path", "%s", strerror(errno));
    bool sized = fstat(fileno(bulk->file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    hfi_progress_start(&bulk->progress, sized ? "KiB" : "jobs", sized ? (uint64_t)status.st_size / 1024 : 0);
    int code = read_all(bulk, sized);
    hfi_progress_end(&bulk->progress);
    forget_chunk(bulk);
    if (bulk->file != stdin)
        fclose(bulk->file);
    hfi_release(bulk->line);
    if (code == 0)
        print_end(bulk);
    return code;
}
