/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LETTER_H
#define HFI_JOBS_LETTER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/dead.h"
#include "jobs/record.h"

/* Dead letters that come from outside: checked, and taken apart into what stores keep. The same for every store; pure. */
#define HFI_ORIGIN_ROOM 80

/* `<store uuid>-<id>` into HFI_ORIGIN_ROOM bytes; returns `text`. */
char *hfi_letter_origin(const char *uuid, int64_t id, char *text);
/* Its id where it died when that was the store of this uuid; else 0. */
int64_t hfi_letter_own(const struct hf_dead_view *letter, const char *uuid);
/*
 * Of a letter whose job a death made: the origin of the letter that it tells of, `number` where it died itself. Into
 * HFI_ORIGIN_ROOM bytes; returns `text`.
 */
char *hfi_letter_told(const char *origin, int64_t number, char *text);
/*
 * May one that died in this store come back, as what its job knows of it? `deaths` of the job, -1: it is not here any more;
 * `next_job`: ids from here on are nobody's yet. HF_EINVAL: a death that never was would hide the one that comes.
 */
int hfi_letter_home(const struct hf_dead_view *letter, int64_t deaths, int64_t next_job, struct hf_error *error);
/* 0, HF_EINVAL, HF_ETEXT, HF_ETOOBIG. */
int hfi_letter_check(const struct hf_dead_view *letter, struct hf_error *error);
/*
 * The job and the death of a checked letter; texts are the letter's. `own`: ids of jobs mean what they say. `curve` is the
 * room for its policy; job->policy points there, or is NULL.
 */
void hfi_letter_take(const struct hf_dead_view *letter, bool own, struct hfi_curve *curve, struct hfi_job *job,
                     struct hfi_death *death);

#endif
