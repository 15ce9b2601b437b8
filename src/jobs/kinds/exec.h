/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_EXEC_H
#define HFI_JOBS_KINDS_EXEC_H

#include <sys/types.h>

#include "base/text.h"
#include "jobs/work.h"

/* What the files of the exec kind share: how a child is made, and what is kept of its output. */

struct hfi_child {
    pid_t pid;
    int pidfd;  /* readable once it has ended */
    int out;    /* its stdout and stderr: our ends, not blocking */
    int err;
};
/*
 * Makes the child: its own session and process group, no signal blocked or ignored, no descriptor but 0, 1, 2, the
 * payload on stdin, only the listed environment. 0, or HF_EIO with what went wrong in `outcome`; then no child
 * is left, and sent is NO unless one ran.
 */
int hfi_child_make(const struct hf_work *work, struct hfi_child *child, struct hf_outcome *outcome);
/* The descriptor, or a copy above 2, so that moving it to 0, 1 or 2 in the child cannot hit another one; -1 stays. */
int hfi_lift(int fd);
bool hfi_write_all(int fd, const char *data, size_t left); /* false: errno */
/* What a child is made of. */
struct hfi_spawn {
    char **command, **variables;
    const char *directory;
    int in, out, err; /* above 2 */
};
/*
 * As posix_spawn, which has neither limits for the child alone nor a way to let it die with its parent: it gets KILL when the
 * calling thread ends, and so must be made by one that lives as long as the node does. 0 or an errno.
 */
int hfi_spawn(const struct hfi_spawn *spawn, const struct hf_type_options *type, pid_t *pid);
/* Somebody else reaped it: a failure, for nobody knows how it ended. */
void hfi_child_status_lost(struct hf_outcome *outcome);

/* The first half of the room and the last half of it; what came between is counted and dropped. */
#define HFI_CAPTURE_HALF ((size_t)32768)
struct hfi_capture {
    struct hfi_bytes head;
    char *tail;      /* ring; made when the head is full */
    size_t at;       /* where the next byte goes */
    uint64_t total;  /* bytes that came */
};
void hfi_capture_init(struct hfi_capture *capture, size_t head);
void hfi_capture_free(struct hfi_capture *capture);
void hfi_capture_add(struct hfi_capture *capture, const char *data, size_t length, bool with_tail);
/* As clean text for people, at most HFI_DETAIL_MAX bytes; hfi_alloc. NULL when there is none or no memory. */
char *hfi_capture_text(const struct hfi_capture *capture);
/* The last line that is not empty, cleaned. */
void hfi_capture_last_line(const struct hfi_capture *capture, char *line, size_t room);

#endif
