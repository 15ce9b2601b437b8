/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_RENDER_H
#define HFI_JOBS_DEATHS_RENDER_H

#include "base/text.h"
#include "jobs/store.h"

/* `{name}` in the texts of a sink. Pure but for the memory of `text`; any thread. */
enum hfi_place {
    HFI_PLACE_TEXT,    /* of several lines; whoever puts it into JSON or a mail escapes it there */
    HFI_PLACE_LINE,    /* a header: one line without control characters */
    HFI_PLACE_ARGUMENT /* the same, and no value makes it begin with a dash */
};
/* 0, or HF_ECONFIG: a field that is none, or {message} where it may not be. */
int hfi_render_check(const char *what, const char *text, bool message, struct hf_error *error);
/*
 * May this text stand for that alert? One for several deaths only if it says how many; never for a digest, whose causes
 * have no field.
 */
bool hfi_render_fits(const char *text, const struct hfi_alert *alert);
void hfi_render(struct hfi_bytes *to, const char *text, const struct hfi_alert *alert, enum hfi_place place);

#endif
