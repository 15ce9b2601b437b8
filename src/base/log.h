/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_LOG_H
#define HFI_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/log.h"

bool hfi_log_wants(enum hf_log_level level);

/*
 * One line. Fields are typed pairs ended by NULL: hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("job", id),
 * HFI_S("error_type", type), NULL). Texts are escaped and cut at 4,000 bytes. Never call it holding a lock.
 */
#define HFI_S(name, text) "s" name, (const char *)(text)
#define HFI_I(name, number) "i" name, (long long)(number)
#define HFI_B(name, truth) "b" name, (int)(truth)
void hfi_log(enum hf_log_level level, const char *event, ...);

#endif
