/* SPDX-License-Identifier: MIT */
/* `holdfast retry-after`: what a Retry-After header asks for, read as the library reads it. No store, no configuration. */
#include <stdio.h>

#include "holdfast/classify.h"
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"

static const struct hfi_flag flags[] = {
    {.name = "now", .kind = HFI_FLAG_TIME, .value = "TIME", .help = "measure a date against this time (default: the clock)"},
    {0},
};

static int run(const struct hfi_options *options) {
    int64_t wait = hf_retry_after_ms(options->arguments[0], hfi_flag_number(options, "now", hf_time_now()));
    if (hfi_manner()->json) {
        json_t *object = json_object();
        if (wait < 0)
            json_object_set_new(object, "wait_ms", json_null());
        else
            hfi_json_number(object, "wait_ms", wait);
        hfi_print_json(object);
    } else if (wait < 0) {
        hfi_say("none");
    } else {
        hfi_say("%lld", (long long)wait);
    }
    return HFI_EXIT_OK;
}

const struct hfi_command hfi_command_retry_after = {
    .name = "retry-after",
    .arguments = "VALUE",
    .summary = "Prints the wait a Retry-After header asks for, in ms, or none",
    .about = "VALUE is the raw header: seconds, or one of the three date forms of HTTP. A date that is over gives 0.",
    .example = "holdfast retry-after 'Fri, 31 Dec 1999 23:59:59 GMT' --now 1999-12-31T23:59:00Z",
    .flags = flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run,
};
