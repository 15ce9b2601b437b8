/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_PLUGIN_H
#define HFI_JOBS_KINDS_PLUGIN_H

#include "holdfast/plugin.h"
#include "jobs/rulebook.h"
#include "jobs/type_options.h"

/* Shared objects with handlers. A loaded one stays: threads of it may still run. */
int hfi_plugin_load(const char *library, const struct hf_plugin **plugin, struct hf_error *error);

/* The type gets the handler of its library, begun for it; an isolated one is only loaded, to see that it can be. */
int hfi_plugin_use(struct hfi_type *type, struct hf_error *error);
/* The same handler for the type's next options: it goes on as it was begun. False: `before` has none of that library. */
bool hfi_plugin_share(struct hfi_type *type, const struct hfi_type *before);
/* The last one of those who share it tells it that the type's last job is over; no-op for other types. */
void hfi_plugin_leave(struct hfi_type *type);

#endif
