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
     * Before the first job, once for each type that names it, on the thread that makes the runner or gives it other
     * options (hf_runner_tune); isolated: in each process before its one job. What it puts into `user` (as set below before) is handed to `run` and `end`. 0, or
     * negative HF_E… with hf_error filled: no runner then. NULL: none.
     */
    int (*init)(const char *type, void **user, struct hf_error *error);
    void (*end)(void *user); /* after the last job of the type: when the runner is freed, or runs without that type; NULL: none */
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
 * In there all that a handler can read, say and end with is as in the node: a checkpoint is durable when hf_work_checkpoint
 * returns 0, heartbeats feed heartbeat_timeout (a process that is silent for longer is killed), a stop makes
 * hf_work_is_cancelled true and calls the stop callback, which runs on a thread that listens to the node and is the loop
 * thread in there; TERM wakes the handler's thread. One that does not look ends by KILL. When the node is gone everything
 * answers HF_ESTALE, and the process is killed.
 *
 * Only the node's client is not there, for breakers and budgets live in its memory: hf_work_client is NULL and hf_work_call
 * HF_ENOENT until the handler gives the work a client of its own. Anything on the socket that the protocol does not know is
 * a failure `isolated.protocol`, and the process is killed. Parent and child have to be the same version of the library; a
 * child that is not says so and exits with 78. A program that was begun with file capabilities or set-user-id outlives a
 * killed node. Since 0.1.
 */
HF_API int hf_isolated_run(hf_handler_fn handler, void *user);
HF_API int hf_isolated_plugin(const char *library); /* the same with the handler of a plugin */
/*
 * From now on hf_work_call of this isolated execution goes through `client`, with the job's key, its time and its rule not to
 * repeat. The caller's own, made in that process (its breakers begin closed each time) and closed by it. 0, or HF_EINVAL: the
 * work is in a node, whose client it has. The handler's thread. Since 0.1.
 */
HF_API int hf_isolated_client(struct hf_work *work, struct hf_client *client);

HF_END

#endif
