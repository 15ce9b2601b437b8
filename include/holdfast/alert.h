/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_ALERT_H
#define HOLDFAST_ALERT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"

HF_BEGIN

/* A webhook that hears of every death: one POST with `text` and `content`, error type only [S0.25]. Copied. */
struct hf_webhook_options {
    uint32_t size;
    const char *name;       /* required: the sink's name in the store */
    const char *url;        /* required; secret: never in logs, errors or the store */
    int64_t timeout_ms;     /* 10 s per try [S0.26] */
};
static inline void hf_webhook_options_init(struct hf_webhook_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->timeout_ms = 10000;
}

HF_END

#endif
