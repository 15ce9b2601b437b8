/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_PLUGIN_H
#define HOLDFAST_PLUGIN_H

#include <stdint.h>

#include "api.h"
#include "error.h"
#include "work.h"

HF_BEGIN

/* Of struct hf_plugin and of all that a handler may call; it rises when an old plugin could no longer run. */
#define HF_PLUGIN_VERSION 1

/*
 * A handler in a shared object, named by a job type of kind plugin. The object exports one function,
 *
 *     const struct hf_plugin *hf_plugin_entry(uint32_t host_version);
 *
 * which gets the HF_PLUGIN_VERSION of the host and returns what it is, or NULL when it cannot work with that host. It
 * must do nothing else: `holdfast check` calls it, too. What it returns lives as long as the process; the object is never
 * unloaded, for threads of it may still run. One object may serve several types: hf_work_type tells them apart.
 */
struct hf_plugin {
    uint32_t version;   /* the HF_PLUGIN_VERSION it was compiled with: has to be the host's */
    const char *name;   /* for messages */
    hf_handler_fn run;  /* required; as a sync native handler, on many threads at once */
    /*
     * Before the first job, once for each type that names it, on the thread that makes the runner; isolated: in each
     * process before its one job. What it puts into `user` (as set below before) is handed to `run` and `end`. 0, or
     * negative HF_E… with hf_error filled: no runner then. NULL: none.
     */
    int (*init)(const char *type, void **user, struct hf_error *error);
    void (*end)(void *user); /* after the last job of the type, when the runner is freed; NULL: none */
    void *user;
};
typedef const struct hf_plugin *(*hf_plugin_entry_fn)(uint32_t host_version);
/* For the plugin to define; declared here so that its type is checked. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct hf_plugin *hf_plugin_entry(uint32_t host_version);

/*
 * The other half of `isolate`: with HF_ISOLATE_PROCESS the node starts the type's `command` for each execution, as it
 * does for exec (own process group, clean environment, limits; TERM at the execution timeout, KILL after kill_grace), and
 * that program calls one of these, before it starts threads or writes to stdout, and exits with what they return. A
 * crash there is a failure `signal.SIGSEGV` of that execution alone; the node lives. `command` may be the program itself:
 * {"/proc/self/exe", "--my-work"}. Standard output of the handler goes to standard error, whose end is kept as evidence.
 *
 * In there the work has no client (hf_work_client is NULL, hf_work_call HF_ENOENT), no stop callback, and takes no checkpoints (HF_ESTATE);
 * the last one of earlier executions can be read. Progress is passed on. TERM makes hf_work_is_cancelled true; one that
 * does not look ends by KILL. Parent and child have to be the same version of the library. Since 0.1.
 */
HF_API int hf_isolated_run(hf_handler_fn handler, void *user);
HF_API int hf_isolated_plugin(const char *library); /* the same with the handler of a plugin */

HF_END

#endif
