/* SPDX-License-Identifier: MIT */
/*
 * The configuration reader on any bytes: never a crash, a leak or a hang, and every refusal has a place and a reason.
 * Built for libFuzzer it fuzzes; built as it is, it runs the files it is given, as a plain test.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int truth, const char *what) {
    if (!truth) {
        fprintf(stderr, "fuzz_config: %s\n", what);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hfi_config config;
    struct hfi_check check = {0};
    if (size > 65536)
        return 0;
    int code = hfi_config_read(&config, "fuzz.yaml", (const char *)data, size, HFI_CONFIG_SECRETS | HFI_CONFIG_STORE);
    demand((code == 0) == (config.problems.errors == 0), "a refusal without an error, or an error without a refusal");
    for (const struct hfi_problem *problem = config.problems.first; problem; problem = problem->next) {
        demand(*problem->what && *problem->why && *problem->rule, "a problem without words");
        demand(problem->line >= 1 && problem->column >= 1, "a problem without a place");
    }
    if (code == 0)
        hfi_config_check(&config, &check);
    hfi_config_free(&config);
    return 0;
}

#ifndef FUZZING
static void run_file(const char *path) {
    static uint8_t bytes[65536];
    FILE *file = fopen(path, "rb");
    demand(file != NULL, path);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, length);
    /* Every prefix is an input too: that is where readers trip. */
    for (size_t cut = 0; cut < length; cut++)
        LLVMFuzzerTestOneInput(bytes, cut);
    /* And every byte flipped, with some that mean something to YAML. */
    for (size_t at = 0; at < length; at++) {
        static const uint8_t marks[] = {0, '\t', '\n', '&', '*', '!', ':', '{', '[', '"', '$', 0x80, 0xff};
        uint8_t kept = bytes[at];
        bytes[at] = marks[(at * 7 + length) % sizeof marks];
        LLVMFuzzerTestOneInput(bytes, length);
        bytes[at] = kept;
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    return argc > 1 ? 0 : 1;
}
#endif
