/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_SESSION_H
#define HFI_PROGRAM_SESSION_H

#include "holdfast/store.h"
#include "program/config/config.h"
#include "program/options.h"

/* The configuration and the store of one command. */
struct hfi_session {
    struct hfi_config config;
    struct hf_store *store;
    const char *url; /* the store's, as it may be shown */
};

enum {
    HFI_SESSION_SECRETS = 1, /* the configuration's secrets are needed */
    HFI_SESSION_STORE = 2,   /* open the store; a missing one is an error */
    HFI_SESSION_CREATE = 4,  /* open the store; a missing one is made */
    HFI_SESSION_CHECK = 8    /* prove the ladder first: warnings on stderr, errors end it */
};

/* 0, or an exit code after complaints. hfi_session_close in any case. */
int hfi_session_open(struct hfi_session *session, const struct hfi_options *options, unsigned wanted);
void hfi_session_close(struct hfi_session *session);

/* Who acts: --actor where the command has it, else the login name. Valid until the next call. */
const char *hfi_actor(const struct hfi_options *options);

/* A payload from a file: bytes that live as long as the session. 0, or an exit code after a complaint. */
struct hfi_payload {
    const void *data;
    size_t length;
};
int hfi_payload_file(struct hfi_session *session, const char *path, struct hfi_payload *payload); /* "-" = stdin */

#endif
