/* SPDX-License-Identifier: MIT */
/*
 * Alerts for people: which messages went to which sink, and how they stand. Only reads. Any thread but the loop's and
 * the writer's.
 */
#include "holdfast/alert.h"

#include "assembly/store_calls.h"

int hf_alert_list_open(struct hf_store *store, const struct hf_alert_filter *given, struct hf_alert_list **list,
                       struct hf_error *error) {
    struct hf_alert_filter filter;
    *list = NULL;
    hf_alert_filter_init(&filter);
    int code = hfi_store_may_block(store, "hf_alert_list_open", error);
    if (code == 0)
        code = hfi_given_options("alert filter", &filter, (uint32_t)sizeof filter, given, error);
    return code != 0 ? code : store->port->ops->list_alerts(store->port, &filter, list, error);
}
