/* SPDX-License-Identifier: MIT */
/*
 * The ladder of a whole runner, proven before it starts and before a reload (2.7): each job type together with the
 * downstream it calls. Errors refuse it, warnings go to the log. The rules are resilience's; this only asks them. Any
 * thread.
 */
#include "assembly/ladder.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

struct prover {
    const char *type;
    struct hf_error *error;
};

static void note(const struct hf_finding *finding, void *user) {
    struct prover *prover = user;
    char what[sizeof prover->error->what];
    snprintf(what, sizeof what, "job type %s: %s", prover->type, finding->key);
    if (!finding->is_error)
        hfi_log(HF_LOG_WARNING, "ladder.warning", HFI_S("what", what), HFI_S("rule", finding->rule),
                HFI_S("why", finding->why), HFI_S("fix", finding->fix), NULL);
    else if (prover->error->code == 0)
        hfi_fail(prover->error, HF_ECONFIG, what, finding->fix, "%s", finding->why);
}

/* The downstream of that name in the array. False: it is not there. */
static bool find(const struct hf_downstream_options *downstreams, size_t count, const char *name,
                 struct hf_downstream_options *known) {
    for (size_t i = 0; i < count; i++) {
        const struct hf_downstream_options *from =
            (const void *)((const char *)downstreams + i * downstreams->size); /* arrays step by the first one's size */
        hf_downstream_options_init(known);
        memcpy(known, from, from->size < sizeof *known ? from->size : sizeof *known);
        if (known->name != NULL && strcmp(known->name, name) == 0)
            return true;
    }
    return false;
}

/* Where a job of the type goes is said by its downstream or by itself, never by both. */
static int fits(const struct hf_type_options *type, bool per_host, struct hf_error *error) {
    if (per_host && type->url == NULL)
        return hfi_fail(error, HF_ECONFIG, type->downstream, "give the type a url, as {url} of the payload",
                        "the job type `%s` has no url, and the downstream is per_host", type->name);
    if (!per_host && type->url != NULL)
        return hfi_fail(error, HF_ECONFIG, type->downstream, "give the type a path, or make the downstream per_host",
                        "the job type `%s` has a url, and the downstream has one of its own", type->name);
    return 0;
}

int hfi_ladder_prove(const struct hfi_rulebook *book, const struct hf_downstream_options *downstreams, size_t count,
                     uint32_t max_calls_per_job, struct hf_error *error) {
    struct hf_error scratch = hf_error_none();
    struct hf_policy_options defaults;
    hf_policy_options_init(&defaults);
    error = error != NULL ? error : &scratch;
    error->code = 0;
    for (size_t i = 0; i < hfi_rulebook_type_count(book); i++) {
        const struct hfi_type *type = hfi_rulebook_type_at(book, i);
        struct prover prover = {type->options.name, error};
        struct hf_downstream_options called;
        struct hf_ladder ladder;
        hf_ladder_init(&ladder);
        ladder.max_executions = type->policy.max_executions;
        ladder.repeatable = type->options.repeatable;
        ladder.execution_timeout_ms = type->execution_timeout_ms;
        ladder.curve_ms = type->policy.waits_ms;
        ladder.curve_length = type->policy.length;
        ladder.max_calls_per_job = max_calls_per_job > 0 ? max_calls_per_job : UINT64_MAX;
        if (type->options.downstream != NULL && find(downstreams, count, type->options.downstream, &called)) {
            ladder.policy = called.policy != NULL ? called.policy : &defaults;
            ladder.redirects = called.redirects_max;
            int code = type->options.kind == HF_KIND_HTTP ? fits(&type->options, called.per_host, error) : 0;
            if (code != 0)
                return code;
        }
        if (hf_ladder_check(&ladder, note, &prover) != 0)
            return error->code != 0 ? error->code : HF_EINVAL;
    }
    return 0;
}
