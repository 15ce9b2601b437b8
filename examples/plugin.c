/* SPDX-License-Identifier: MIT */
/*
 * A job type in a shared object, for the holdfast program to run:
 *
 *     cc -shared -fPIC -o greet.so plugin.c -lholdfast
 *
 *     jobs:
 *       greet: {kind: plugin, library: /usr/local/lib/greet.so}
 *       risky: {kind: plugin, library: /usr/local/lib/greet.so, isolate: process}
 */
#include <holdfast/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int init(const char *type, void **user, struct hf_error *error) {
    char *greeting = malloc(strlen(type) + 10);
    if (greeting == NULL) {
        error->code = HF_ENOMEM;
        return HF_ENOMEM;
    }
    sprintf(greeting, "Hello by %s", type);
    *user = greeting;
    return 0;
}

static void end(void *user) {
    free(user);
}

static enum hf_result run(struct hf_work *work, void *user) {
    size_t length;
    char text[300];
    const char *name = hf_work_payload(work, &length);
    if (length == 0)
        return hf_work_permanent(work, "greet.nobody", "there is nobody to greet");
    if (length == 5 && memcmp(name, "crash", 5) == 0)
        abort(); /* without isolate the node dies with it, and the job is poison in the end */
    hf_work_progress(work, (int64_t)length, "greeting");
    printf("greeting %.*s\n", (int)(length < 200 ? length : 200), name); /* isolated: goes to the evidence of a failure */
    int written = snprintf(text, sizeof text, "%s, %.*s", (const char *)user, (int)(length < 200 ? length : 200), name);
    return hf_work_ok(work, text, (size_t)written);
}

static const struct hf_plugin greet = {.version = HF_PLUGIN_VERSION, .name = "greet", .run = run, .init = init, .end = end};

const struct hf_plugin *hf_plugin_entry(uint32_t host_version) {
    return host_version == HF_PLUGIN_VERSION ? &greet : NULL;
}
