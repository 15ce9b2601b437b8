/* SPDX-License-Identifier: MIT */
/*
 * `holdfast dead export` and `dead import`: dead letters as NDJSON, a line each, bytes in base64 where they are no text.
 * Must never import half of a file because a line of it is wrong: every line is checked before the first is taken in. The
 * main thread's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "holdfast/units.h"
#include "program/base64.h"
#include "program/commands/commands.h"
#include "program/commands/dead_filter.h"
#include "program/commands/views.h"
#include "program/lines.h"
#include "program/output.h"
#include "program/session.h"

#define CHUNK 100
#define CHUNK_BYTES (8u * 1024 * 1024)
#define WRONG_SHOWN 20

/* ------------------------------------------------------------------ export */

static const struct hfi_flag export_flags[] = {
    HFI_DEAD_FILTER_FLAGS,
    {.name = "status", .kind = HFI_FLAG_CHOICE, .value = "dead|redriven|resolved|discarded|all", .help = "only of this status (default: dead)"},
    {0},
};

static int export_page(const struct hfi_session *session, const struct hf_dead_list *list) {
    struct hf_error error;
    for (size_t i = 0; i < hf_dead_list_count(list); i++) {
        struct hf_dead *dead = NULL;
        hf_error_init(&error);
        int code = hf_dead_get(session->store, hf_dead_list_at(list, i)->id, &dead, &error);
        if (code == HF_ENOENT)
            continue; /* pruned meanwhile */
        if (code != 0)
            return hfi_complain(&error);
        hfi_print_json(hfi_dead_json(hf_dead_look(dead), true));
        hf_dead_free(dead);
    }
    return 0;
}

static int run_export(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_dead_filter filter;
    struct hf_dead_list *list = NULL;
    struct hf_error error;
    hfi_dead_filter_read(options, &filter);
    filter.status = (int32_t)hfi_flag_number(options, "status", HF_DEAD_DEAD);
    if (filter.status > HF_DEAD_DISCARDED)
        filter.status = -1;
    filter.limit = 500;
    filter.oldest_first = true;
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    while (code == 0) {
        hf_error_init(&error);
        if (hf_dead_list_open(session.store, &filter, &list, &error) != 0) {
            code = hfi_complain(&error);
            break;
        }
        code = export_page(&session, list);
        filter.after_id = hf_dead_list_next(list);
        hf_dead_list_free(list);
        if (filter.after_id == 0)
            break;
    }
    hfi_session_close(&session);
    return code;
}

/* ------------------------------------------------------------------ one line */

static const struct {
    const char *key;
    size_t at;
} texts[] = {
#define TEXT(name) {#name, offsetof(struct hf_dead_view, name)}
    TEXT(type), TEXT(origin), TEXT(fingerprint), TEXT(queue), TEXT(downstream), TEXT(breaker_key), TEXT(limit_key), TEXT(unique_key),
    TEXT(idempotency_key), TEXT(correlation_id), TEXT(trace_context), TEXT(tags), TEXT(content_type), TEXT(source),
    TEXT(source_message_id), TEXT(error_class), TEXT(error_type), TEXT(error_message), TEXT(detail), TEXT(rule), TEXT(cause),
    TEXT(node), TEXT(settled_by), TEXT(settled_reason), TEXT(new_job_outcome), TEXT(curve_ms),
#undef TEXT
};

/* A letter with the memory that its line needs. */
struct letter {
    json_t *object;
    int line;
    unsigned char *payload; /* decoded */
    struct hf_dead_view view;
};

static void forget(struct letter *letter) {
    json_decref(letter->object);
    hfi_release(letter->payload);
    memset(letter, 0, sizeof *letter);
}

static int refuse(struct hf_error *error, const char *what, const char *why, const char *fix) {
    error->code = HF_EINVAL;
    snprintf(error->what, sizeof error->what, "%s", what);
    snprintf(error->why, sizeof error->why, "%s", why);
    snprintf(error->fix, sizeof error->fix, "%s", fix);
    return HF_EINVAL;
}

static int read_number(const json_t *object, const char *key, int64_t most, int64_t missing, int64_t *to, struct hf_error *error) {
    const json_t *value = json_object_get(object, key);
    *to = missing;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < -1 || json_integer_value(value) > most)
        return refuse(error, key, "it has to be a whole number that fits", "take the line as `dead export` wrote it");
    *to = json_integer_value(value);
    return 0;
}

static int read_time(const json_t *object, const char *key, int64_t *to, struct hf_error *error) {
    const json_t *value = json_object_get(object, key);
    *to = 0;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) || hf_time_parse(json_string_value(value), to) != 0)
        return refuse(error, key, "it has to be a time", "write it as 2026-11-30T10:05:00Z");
    return 0;
}

static int read_word(const json_t *object, const char *key, const char *(*name_of)(int number), int most, int32_t *to, struct hf_error *error) {
    const char *word = json_string_value(json_object_get(object, key));
    for (*to = 0; word && *to <= most; (*to)++)
        if (strcmp(word, name_of(*to)) == 0)
            return 0;
    return refuse(error, key, "missing or unknown", "take the line as `dead export` wrote it");
}

static int read_texts(const json_t *object, struct hf_dead_view *view, struct hf_error *error) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const json_t *value = json_object_get(object, texts[i].key);
        const char *text = json_string_value(value);
        if (value && !json_is_null(value) && !text)
            return refuse(error, texts[i].key, "it has to be a text", "write it in quotes");
        *(const char **)(void *)((char *)view + texts[i].at) = text ? text : "";
    }
    return 0;
}

static int read_payload(struct letter *letter, struct hf_error *error) {
    const json_t *text = json_object_get(letter->object, "payload"), *coded = json_object_get(letter->object, "payload_base64");
    if (text && coded)
        return refuse(error, "payload", "given twice, as text and in base64", "leave one of them out");
    if (text && !json_is_string(text))
        return refuse(error, "payload", "it has to be a text", "write it in quotes, or payload_base64");
    letter->view.payload = text ? json_string_value(text) : NULL;
    letter->view.payload_length = json_string_length(text);
    if (coded && (!json_is_string(coded) || hfi_base64_parse(json_string_value(coded), json_string_length(coded), &letter->payload,
                                                             &letter->view.payload_length) != 0))
        return refuse(error, "payload_base64", "it is no base64", "RFC 4648 with padding, without blanks");
    if (coded)
        letter->view.payload = letter->payload;
    const json_t *length = json_object_get(letter->object, "payload_bytes");
    if (length && json_integer_value(length) != (json_int_t)letter->view.payload_length)
        return refuse(error, "payload_bytes", "it does not go with the payload", "take the line as `dead export` wrote it");
    return 0;
}

static int read_numbers(const json_t *object, struct hf_dead_view *view, struct hf_error *error) {
    int64_t death_no, executions, failures, most, given, curve, jitter, priority;
    if (read_number(object, "job_id", INT64_MAX, 0, &view->job_id, error) != 0 ||
        read_number(object, "new_job_id", INT64_MAX, 0, &view->new_job_id, error) != 0 ||
        read_number(object, "root_id", INT64_MAX, 0, &view->root_id, error) != 0 ||
        read_number(object, "execution_timeout_ms", INT64_MAX, -1, &view->execution_timeout_ms, error) != 0 ||
        read_number(object, "death_no", UINT32_MAX, 1, &death_no, error) != 0 ||
        read_number(object, "executions", UINT32_MAX, 0, &executions, error) != 0 ||
        read_number(object, "failures", UINT32_MAX, 0, &failures, error) != 0 ||
        read_number(object, "max_executions", UINT32_MAX, 0, &most, error) != 0 ||
        read_number(object, "max_executions_given", UINT32_MAX, 0, &given, error) != 0 ||
        read_number(object, "curve_executions", UINT32_MAX, 0, &curve, error) != 0 ||
        read_number(object, "curve_jitter_permille", 1000, 0, &jitter, error) != 0 ||
        read_number(object, "priority", 9, 0, &priority, error) != 0)
        return HF_EINVAL;
    if (death_no < 0 || executions < 0 || failures < 0 || most < 0 || given < 0 || curve < 0 || jitter < 0)
        return refuse(error, "count", "a negative one", "take the line as `dead export` wrote it");
    view->death_no = (uint32_t)death_no;
    view->executions = (uint32_t)executions;
    view->failures = (uint32_t)failures;
    view->max_executions = (uint32_t)most;
    view->max_executions_given = (uint32_t)given;
    view->curve_executions = (uint32_t)curve;
    view->curve_jitter_permille = (uint32_t)jitter;
    view->priority = (int32_t)priority;
    view->quarantined = json_is_true(json_object_get(object, "quarantined"));
    view->payload_cut = json_is_true(json_object_get(object, "payload_cut"));
    return 0;
}

static int read_letter(const struct hfi_lines *lines, struct letter *letter, struct hf_error *error) {
    json_error_t wrong;
    hf_error_init(error);
    if (lines->length > HFI_LINE_MAX)
        return refuse(error, "line", "it is longer than 16 MiB", "");
    letter->object = json_loadb(lines->line, lines->length, JSON_REJECT_DUPLICATES, &wrong);
    if (!json_is_object(letter->object))
        return refuse(error, "line", letter->object ? "it is no object" : wrong.text, "write one JSON object a line");
    int code = read_texts(letter->object, &letter->view, error);
    if (code == 0)
        code = read_numbers(letter->object, &letter->view, error);
    if (code == 0)
        code = read_payload(letter, error);
    if (code == 0)
        code = read_word(letter->object, "status", hf_dead_status_name, HF_DEAD_DISCARDED, &letter->view.status, error);
    if (code == 0)
        code = read_word(letter->object, "class", hf_death_class_name, HF_DEATH_POISON, &letter->view.death_class, error);
    if (code == 0)
        code = read_time(letter->object, "job_created_at", &letter->view.job_created_at_us, error);
    if (code == 0)
        code = read_time(letter->object, "dead_at", &letter->view.dead_at_us, error);
    if (code == 0)
        code = read_time(letter->object, "settled_at", &letter->view.settled_at_us, error);
    return code != 0 ? code : hf_dead_check(&letter->view, error);
}

/* ------------------------------------------------------------------ import */

struct import {
    struct hfi_session session;
    const char *path, *actor;
    struct hfi_lines lines;
    struct letter letters[CHUNK];
    size_t count, bytes;
    int checked; /* lines that the first pass saw */
    uint64_t imported, known;
};

static const char *name_of(const struct import *import) {
    return strcmp(import->path, "-") == 0 ? "stdin" : import->path;
}

/* Every line, before anything is written. An exit code. */
static int check_all(struct import *import) {
    struct hf_error error;
    int code = 0;
    uint64_t wrong = 0;
    while (hfi_lines_next(&import->lines)) {
        struct letter letter = {0};
        if (!hfi_lines_blank(&import->lines) && read_letter(&import->lines, &letter, &error) != 0 && wrong++ < WRONG_SHOWN) {
            snprintf(error.file, sizeof error.file, "%s", name_of(import));
            error.line = import->lines.number;
            code = hfi_complain(&error);
        }
        forget(&letter);
    }
    if (ferror(import->lines.file))
        return hfi_usage(import->path, NULL, "%s", strerror(errno));
    import->checked = import->lines.number;
    if (wrong > 0)
        fprintf(stderr, "holdfast: nothing was imported: %llu lines are wrong\n", (unsigned long long)wrong);
    return code;
}

static int commit(struct import *import) {
    struct hf_dead_view views[CHUNK];
    int64_t ids[CHUNK];
    bool existed[CHUNK];
    struct hf_error error;
    hf_error_init(&error);
    for (size_t i = 0; i < import->count; i++)
        views[i] = import->letters[i].view;
    if (hf_dead_import(import->session.store, views, import->count, import->actor, ids, existed, &error) != 0) {
        if (error.line > 0 && (size_t)error.line <= import->count) {
            snprintf(error.file, sizeof error.file, "%s", name_of(import));
            error.line = import->letters[error.line - 1].line;
        }
        int code = hfi_complain(&error);
        fprintf(stderr, "holdfast: %llu were imported before it; import the file again, those are known then\n",
                (unsigned long long)import->imported);
        return code;
    }
    for (size_t i = 0; i < import->count; i++) {
        import->known += existed[i];
        import->imported += !existed[i];
        forget(&import->letters[i]);
    }
    import->count = import->bytes = 0;
    return 0;
}

static int import_all(struct import *import) {
    struct hf_error error;
    int code = 0;
    if (fseeko(import->lines.file, 0, SEEK_SET) != 0)
        return hfi_usage(import->path, NULL, "%s", strerror(errno));
    import->lines.number = 0;
    while (code == 0 && hfi_lines_next(&import->lines)) {
        if (hfi_lines_blank(&import->lines))
            continue;
        struct letter *letter = &import->letters[import->count++];
        if (read_letter(&import->lines, letter, &error) != 0)
            return hfi_complain(&error); /* the file changed under our eyes */
        letter->line = import->lines.number;
        import->bytes += import->lines.length;
        if (import->count == CHUNK || import->bytes > CHUNK_BYTES)
            code = commit(import);
    }
    if (code == 0 && import->count > 0)
        code = commit(import);
    if (code == 0 && ferror(import->lines.file))
        return hfi_usage(import->path, NULL, "%s", strerror(errno));
    if (code == 0 && import->lines.number != import->checked)
        return hfi_usage(import->path, "import it again, what was imported is known then", "it changed while it was read: %d lines, then %d",
                         import->checked, import->lines.number);
    return code;
}

static bool copy_all(FILE *from, FILE *to) {
    char block[65536];
    size_t length;
    while ((length = fread(block, 1, sizeof block, from)) > 0)
        if (fwrite(block, 1, length, to) != length)
            return false;
    return !ferror(from) && fflush(to) == 0 && fseeko(to, 0, SEEK_SET) == 0;
}

/* A file that can be read twice: what comes through a pipe, whatever its name, is kept aside. */
static FILE *open_file(const char *path) {
    struct stat about;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file || (file != stdin && fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode)))
        return file;
    FILE *kept = tmpfile();
    bool good = kept && copy_all(file, kept);
    int why = errno;
    if (kept && !good)
        fclose(kept);
    if (file != stdin)
        fclose(file);
    errno = why;
    return good ? kept : NULL;
}

static const struct hfi_flag import_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {0},
};

static int run_import(const struct hfi_options *options) {
    struct import *import = hfi_grow(NULL, sizeof *import);
    memset(import, 0, sizeof *import);
    import->path = options->argument_count > 0 ? options->arguments[0] : "-";
    int code = hfi_session_open(&import->session, options, HFI_SESSION_CREATE);
    import->actor = hfi_actor(options);
    if (code == 0 && !(import->lines.file = open_file(import->path)))
        code = hfi_usage(import->path, "check the path", "%s", strerror(errno));
    if (code == 0)
        code = check_all(import);
    if (code == 0)
        code = import_all(import);
    if (code == 0 && hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_number(object, "imported", (int64_t)import->imported);
        hfi_json_number(object, "existed", (int64_t)import->known);
        hfi_print_json(object);
    } else if (code == 0) {
        hfi_say("%llu imported, %llu were there already", (unsigned long long)import->imported, (unsigned long long)import->known);
    }
    for (size_t i = 0; i < CHUNK; i++)
        forget(&import->letters[i]);
    hfi_lines_free(&import->lines);
    if (import->lines.file)
        fclose(import->lines.file);
    hfi_session_close(&import->session);
    hfi_release(import);
    return code;
}

const struct hfi_command hfi_command_dead_export = {
    .name = "dead export",
    .arguments = "",
    .summary = "Prints dead letters as NDJSON, oldest first: all there is, payloads byte for byte",
    .about = "A line each, with payload_base64 where the bytes are no text. `dead import` takes them in again, here or elsewhere.",
    .example = "holdfast dead export --status all > letters.ndjson",
    .flags = export_flags,
    .run = run_export,
};
const struct hfi_command hfi_command_dead_import = {
    .name = "dead import",
    .arguments = "[FILE]",
    .summary = "Takes in dead letters that `dead export` printed, from FILE or stdin",
    .about = "Every line is checked first: nothing is imported when one is wrong. A dead letter that is there already stays as it is, so\n"
             "that the same file may be imported again. Nobody is alerted. The letters of another store keep their idempotency keys.",
    .example = "holdfast dead import letters.ndjson --actor ada",
    .flags = import_flags,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_import,
};
