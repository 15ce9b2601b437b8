/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_VIEWS_H
#define HFI_JOBS_VIEWS_H

#include "holdfast/alert.h"
#include "holdfast/dead.h"
#include "holdfast/forward.h"
#include "holdfast/job.h"
#include "holdfast/store.h"
#include "jobs/record.h"

/*
 * Builders of the snapshots that stores hand out. A row is filled by the store with texts of any lifetime (NULL = "")
 * and copied with them: `add` copies every text, in lists no payload, result or detail (their lengths stay). `size` of
 * the rows is set here. 0 or HF_ENOMEM; after an error free what was begun. One thread at a time.
 */
int hfi_job_list_new(struct hf_job_list **list);
int hfi_job_list_add(struct hf_job_list *list, const struct hf_job_view *row);
void hfi_job_list_set_next(struct hf_job_list *list, int64_t cursor); /* last id of a page that has a next one */

int hfi_job_new(const struct hf_job_view *row, struct hf_job **job); /* with payload and result */
int hfi_job_add_history(struct hf_job *job, const struct hf_history_view *row);
/* Parents first; children beyond HF_CHILDREN_MAX are only counted. */
int hfi_job_add_link(struct hf_job *job, const struct hf_link_view *row);

int hfi_dead_list_new(struct hf_dead_list **list);
int hfi_dead_list_add(struct hf_dead_list *list, const struct hf_dead_view *row);
void hfi_dead_list_set_next(struct hf_dead_list *list, int64_t cursor);
int hfi_dead_new(const struct hf_dead_view *row, struct hf_dead **dead); /* with payload and detail */

int hfi_dead_group_list_new(struct hf_dead_group_list **list);
/* Counted in the total; kept while there is room in HF_DEAD_GROUPS_MAX. */
int hfi_dead_group_list_add(struct hf_dead_group_list *list, const struct hf_dead_group_view *row);
int64_t hfi_dead_group_list_newest(const struct hf_dead_group_list *list); /* the highest id in all groups; 0 none */
/* Does the filter take it? Not asked: its cursor and limit. */
bool hfi_dead_fits(const struct hf_dead_view *view, const struct hf_dead_filter *filter);

int hfi_redrive_list_new(struct hf_redrive_list **list);
int hfi_redrive_list_add(struct hf_redrive_list *list, const struct hf_redrive_view *row);
void hfi_redrive_list_set_next(struct hf_redrive_list *list, int64_t cursor);
int hfi_alert_list_new(struct hf_alert_list **list);
int hfi_alert_list_add(struct hf_alert_list *list, const struct hf_alert_view *row);
void hfi_alert_list_set_next(struct hf_alert_list *list, int64_t cursor);

int hfi_dead_add_forward(struct hf_dead *dead, const struct hf_dead_forward *row);

int hfi_forward_list_new(struct hf_forward_list **list);
int hfi_forward_list_add(struct hf_forward_list *list, const struct hf_forward_view *row);
int hfi_queue_list_new(struct hf_queue_list **list);
int hfi_queue_list_add(struct hf_queue_list *list, const struct hf_queue_view *row);
int hfi_limit_list_new(struct hf_limit_list **list);
#define HFI_LIMIT_PENDING_MAX 10000 /* jobs of a lane that are counted */
#define HFI_LIMIT_NAMES_MAX 1000
int hfi_limit_list_add(struct hf_limit_list *list, const struct hf_limit_view *row);
int hfi_downstream_list_new(struct hf_downstream_list **list);
int hfi_downstream_list_add(struct hf_downstream_list *list, const struct hf_downstream_row *row);

/* A view of a stored record; its texts are the job's, `owner` and `key`. `key` has HFI_IDEMPOTENCY_ROOM bytes. */
#define HFI_IDEMPOTENCY_ROOM (HFI_KEY_MAX + 1)
void hfi_job_view_fill(struct hf_job_view *view, const struct hfi_job *job, const char *owner, const char *uuid,
                       char *key);
/* What a job is shown as: hf_job_shown of a pending one, -1 of others. `kept`: its downstream lets no jobs through now. */
int hfi_job_shown(const struct hfi_job *job, bool kept, struct hf_wall now);
const char *hfi_job_shown_text(const struct hfi_job *job, bool kept, struct hf_wall now);
/* What it was shown as after a step of its history. */
const char *hfi_history_shown(const struct hfi_history *history);
/* Does the filter take it? Not asked: its cursor and limit. */
bool hfi_job_fits(const struct hfi_job *job, const struct hf_job_filter *filter, bool kept, struct hf_wall now);
void hfi_history_view_fill(struct hf_history_view *view, const struct hfi_history *history, const char *node);
/* The idempotency key in force: the stored one, or `<store uuid>-<root id>` when that is empty. Returns `key`. */
char *hfi_idempotency_key(const struct hfi_job *job, const char *uuid, char *key);

/* Rows of one page: 0 gives 100, at most 1000. */
uint32_t hfi_page_limit(uint32_t limit);
/* A fingerprint as text, into at least 17 bytes. */
char *hfi_fingerprint_print(uint64_t fingerprint, char *text);

#endif
