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

#include "program/lines.h"
#include "program/output.h"
#include "program/progress.h"

#define CHUNK 500

struct bulk {
    struct hfi_session *session;
    const struct hfi_spec *defaults;
    const char *path;
    struct hfi_lines lines;
    struct hfi_arena arena; /* of the chunk */
    struct hfi_spec *specs;
    struct hf_job_spec *jobs;
    json_t *objects[CHUNK];
    int numbers[CHUNK]; /* lines in the file */
    size_t count;
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
            bulk->count > 0 ? bulk->numbers[0] : line, bulk->lines.number);
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
        return complain(bulk, &error, named ? bulk->numbers[error.line - 1] : bulk->lines.number);
    }
    bulk->first_id = bulk->first_id ? bulk->first_id : bulk->ids[0];
    bulk->last_id = bulk->ids[bulk->count - 1];
    for (size_t i = 0; i < bulk->count; i++)
        bulk->known += bulk->existed[i];
    bulk->enqueued += bulk->count;
    forget_chunk(bulk);
    return 0;
}

static int read_line(struct bulk *bulk) {
    struct hf_error error;
    json_error_t wrong;
    struct hfi_spec *spec = &bulk->specs[bulk->count];
    hf_error_init(&error);
    error.code = HF_EINVAL;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *object = json_loadb(bulk->lines.line, bulk->lines.length, flags, &wrong);
    /* Payloads keep their bytes, so an integer of any size is welcome there. */
    if (!object && json_error_code(&wrong) == json_error_numeric_overflow)
        object = json_loadb(bulk->lines.line, bulk->lines.length, flags | JSON_DECODE_INT_AS_REAL, &wrong);
    if (!object) {
        error.column = wrong.column > 0 ? wrong.column : 1;
        snprintf(error.what, sizeof error.what, "line");
        snprintf(error.why, sizeof error.why, "%s", wrong.text);
        snprintf(error.fix, sizeof error.fix, "write one JSON object a line");
        return complain(bulk, &error, bulk->lines.number);
    }
    *spec = *bulk->defaults;
    bulk->objects[bulk->count] = object;
    bulk->numbers[bulk->count++] = bulk->lines.number;
    if (hfi_spec_from_json(spec, object, bulk->lines.line, bulk->lines.length, &bulk->arena, &error) != 0)
        return complain(bulk, &error, bulk->lines.number);
    return 0;
}

static int read_all(struct bulk *bulk, bool sized) {
    struct hf_error error;
    int code = 0;
    while (code == 0 && hfi_lines_next(&bulk->lines)) {
        if (bulk->lines.length > HFI_LINE_MAX) {
            hf_error_init(&error);
            error.code = HF_ETOOBIG;
            snprintf(error.what, sizeof error.what, "line");
            snprintf(error.why, sizeof error.why, "it is longer than 16 MiB");
            return complain(bulk, &error, bulk->lines.number);
        }
        code = hfi_lines_blank(&bulk->lines) ? 0 : read_line(bulk);
        if (code == 0 && bulk->count == CHUNK)
            code = commit(bulk);
        hfi_progress_move(&bulk->progress, sized ? bulk->lines.bytes / 1024 : bulk->enqueued);
        if (code != 0)
            return code;
    }
    if (ferror(bulk->lines.file))
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
    bulk->lines.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!bulk->lines.file)
        return hfi_usage(path, "check the path", "%s", strerror(errno));
    bool sized = fstat(fileno(bulk->lines.file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    hfi_progress_start(&bulk->progress, sized ? "KiB" : "jobs", sized ? (uint64_t)status.st_size / 1024 : 0);
    int code = read_all(bulk, sized);
    hfi_progress_end(&bulk->progress);
    forget_chunk(bulk);
    if (bulk->lines.file != stdin)
        fclose(bulk->lines.file);
    hfi_lines_free(&bulk->lines);
    if (code == 0)
        print_end(bulk);
    return code;
}
