/* SPDX-License-Identifier: MIT */
/*
 * Sorts failures into the few causes that tell a person where to look. Where it happened comes before how: a connect
 * that timed out is a matter of connecting. Pure, any thread.
 */
#include "resilience/cause.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool is_timeout(const char *type) {
    return hfi_dotted_prefix("timeout", type) || ends_with(type, "timedout") || ends_with(type, "TIMEDOUT");
}

enum hf_cause hfi_cause_of(const struct hf_outcome *outcome) {
    switch (outcome->stage) {
    case HF_STAGE_RESOLVE:
        return HF_CAUSE_RESOLVE;
    case HF_STAGE_CONNECT:
        return HF_CAUSE_CONNECT;
    case HF_STAGE_TLS:
        return HF_CAUSE_TLS;
    case HF_STAGE_SEND:
    case HF_STAGE_WAIT:
    case HF_STAGE_RECEIVE:
        if (is_timeout(outcome->error_type))
            return HF_CAUSE_TIMEOUT;
        if (hfi_dotted_prefix("http", outcome->error_type))
            return outcome->native >= 500 && outcome->native <= 599 ? HF_CAUSE_HTTP_5XX : HF_CAUSE_OTHER;
        return hfi_dotted_prefix("curl", outcome->error_type) || hfi_dotted_prefix("errno", outcome->error_type)
                   ? HF_CAUSE_RESET
                   : HF_CAUSE_OTHER;
    case HF_STAGE_LOCAL:
    case HF_STAGE_HANDLER:
        break;
    }
    return is_timeout(outcome->error_type) ? HF_CAUSE_TIMEOUT : HF_CAUSE_OTHER;
}

const char *hf_cause_name(enum hf_cause cause) {
    switch (cause) {
#define NAME_CASE(name, text)                                                                                          \
    case HF_CAUSE_##name:                                                                                              \
        return text;
        HF_CAUSE_MAP(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

bool hfi_causes_named(const struct hf_causes *causes) {
    for (int i = 0; i < HF_CAUSES; i++)
        if (i != HF_CAUSE_OTHER && causes->counts[i] > 0)
            return true;
    return false;
}

char *hfi_causes_print(const struct hf_causes *causes, char *text) {
    bool told[HF_CAUSES] = {false};
    size_t length = 0;
    text[0] = '\0';
    for (;;) {
        int most = -1;
        for (int i = 0; i < HF_CAUSES; i++)
            if (!told[i] && causes->counts[i] > 0 && (most < 0 || causes->counts[i] > causes->counts[most]))
                most = i;
        if (most < 0)
            return text;
        told[most] = true;
        int wrote = snprintf(text + length, HFI_CAUSES_ROOM - length, "%s%llu %s", length > 0 ? ", " : "",
                             (unsigned long long)causes->counts[most], hf_cause_name((enum hf_cause)most));
        if (wrote < 0 || (size_t)wrote >= HFI_CAUSES_ROOM - length) {
            text[length] = '\0'; /* whole entries only */
            return text;
        }
        length += (size_t)wrote;
    }
}
