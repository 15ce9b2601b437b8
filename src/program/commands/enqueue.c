/* SPDX-License-Identifier: MIT */
/* `holdfast enqueue`: one job, its id printed after the commit; many with --ndjson (bulk.c). The main thread's. */
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/bulk.h"
#include "program/commands/commands.h"
#include "program/commands/spec.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag flags[] = {
    {.name = "file", .kind = HFI_FLAG_TEXT, .value = "F", .help = "the payload is the content of a file"},
    {.name = "ndjson", .kind = HFI_FLAG_OPTIONAL, .value = "F", .help = "many jobs, one JSON object a line, from a file or stdin"},
    HFI_SPEC_FLAGS,
    {0},
};

static int read_payload(struct hfi_session *session, const struct hfi_options *options, struct hf_job_spec *spec) {
    const char *file = hfi_flag_text(options, "file", NULL);
    const char *text = options->argument_count > 1 ? options->arguments[1] : NULL;
    struct hfi_payload payload = {text, text ? strlen(text) : 0};
    if (text && strcmp(text, "-") == 0)
        file = "-";
    int code = file ? hfi_payload_file(session, file, &payload) : 0;
    spec->payload = payload.data;
    spec->payload_length = payload.length;
    return code;
}

static void print_id(int64_t id, bool existed) {
    if (!hfi_manner()->json) {
        hfi_say("%lld", (long long)id);
        if (existed)
            hfi_note("a job with this unique key was there already");
        return;
    }
    json_t *object = json_object();
    hfi_json_number(object, "id", id);
    hfi_json_flag(object, "existed", existed);
    hfi_print_json(object);
}

/* Are there any of that kind in the configuration, and none of that name? */
static void warn_one(const char *kind, const char *name, const struct hfi_items *items, size_t size) {
    struct hfi_nearest nearest;
    char clean[640];
    if (!name || !*name || items->count == 0 || hfi_manner()->quiet || hfi_items_find(items, size, name, &nearest))
        return;
    fprintf(stderr, "holdfast: warning: the configuration has no %s `%s`%s%s%s\n", kind, hfi_printable(clean, sizeof clean, name),
            nearest.best ? " (did you mean `" : "", nearest.best ? nearest.best : "", nearest.best ? "`?)" : "");
}

/* A mistyped type would end in quarantine: say so at once. Other nodes may know it, so it is no error. */
static void warn_unknown(const struct hfi_config *config, const char *type) {
    warn_one("job type", type, &config->settings.jobs, sizeof(struct hfi_job_setting));
}

/* The same of a queue or downstream, where it would wait under rules that nobody meant. */
static void warn_place(const struct hfi_config *config, const struct hf_job_spec *spec) {
    if (spec->queue && strcmp(spec->queue, "default") != 0)
        warn_one("queue", spec->queue, &config->settings.queues, sizeof(struct hfi_queue_setting));
    warn_one("downstream", spec->downstream, &config->settings.downstreams, sizeof(struct hfi_downstream_setting));
}

static int enqueue_one(struct hfi_session *session, const struct hfi_options *options, struct hfi_spec *spec) {
    struct hf_error error;
    int64_t id = 0;
    bool existed = false;
    hf_error_init(&error);
    spec->spec.type = options->arguments[0];
    int code = read_payload(session, options, &spec->spec);
    if (code != 0)
        return code;
    hfi_spec_complete(spec, &session->config);
    if (hfi_spec_check_limit(&spec->spec, &session->config, &error) != 0)
        return hfi_complain(&error);
    warn_unknown(&session->config, spec->spec.type);
    if (hf_enqueue(session->store, &spec->spec, &id, &existed, &error) != 0) {
        hfi_spec_words(spec, true, &error);
        return hfi_complain(&error);
    }
    warn_place(&session->config, &spec->spec);
    print_id(id, existed);
    return HFI_EXIT_OK;
}

static int check_arguments(const struct hfi_options *options) {
    bool bulk = hfi_flag(options, "ndjson")->given, file = hfi_flag(options, "file")->given;
    if (!bulk && options->argument_count == 0)
        return hfi_usage("enqueue", "holdfast enqueue TYPE [PAYLOAD]", "it needs a type");
    if (file && options->argument_count > 1)
        return hfi_usage("enqueue", "give one of them", "a payload and --file are both given");
    if (bulk && (file || options->argument_count > 1))
        return hfi_usage("enqueue", "put payloads into the lines", "--ndjson brings its own payloads");
    return 0;
}

static int run(const struct hfi_options *options) {
    struct hfi_session session;
    struct hfi_spec spec;
    int code = check_arguments(options);
    if (code == 0)
        code = hfi_spec_from_flags(&spec, options, hf_time_now());
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_CREATE);
    if (code == 0 && hfi_flag(options, "ndjson")->given) {
        spec.spec.type = options->argument_count > 0 ? options->arguments[0] : NULL;
        code = hfi_bulk_enqueue(&session, hfi_flag_text(options, "ndjson", "-"), &spec);
    } else if (code == 0) {
        code = enqueue_one(&session, options, &spec);
    }
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_enqueue = {
    .name = "enqueue",
    .arguments = "TYPE [PAYLOAD | --file F | -]",
    .summary = "Puts a job into the store and prints its id once it is durable",
    .about = "The payload is bytes: a text, a file, or - for stdin. What the configuration says about the type (queue, downstream,\n"
             "curve, executions) is fixed with the job. --ndjson reads lines such as\n"
             "{\"type\":\"charge\",\"payload\":{\"amount\":7}} with the fields type, payload (a text: its bytes; else its compact JSON)\n"
             "or payload_base64, queue, priority, in, at, max_executions, curve, unique, replace, unique_for, limit, expires_in, correlation,\n"
             "downstream, content_type, idempotency_key, tags, source, source_message_id, after_jobs ([17,18]), after_ended; flags and TYPE are defaults for them.\n"
             "A job that waits for others (--after-jobs) is cancelled when one of them does not succeed, and waits again when that one\n"
             "is requeued; a redrive makes another job, which frees nobody. It has to name jobs that are in the store.\n"
             "It commits 500 lines at a time; a wrong line is named and nothing of its 500 is enqueued.",
    .example = "holdfast enqueue charge '{\"order\":17}' --unique order-17 --in 5m\n"
               "holdfast enqueue --ndjson jobs.ndjson",
    .flags = flags,
    .max_arguments = 2,
    .prints_json = true,
    .run = run,
};
