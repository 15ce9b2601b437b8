/* SPDX-License-Identifier: MIT */
#ifndef HF_TESTS_NODE_H
#define HF_TESTS_NODE_H

#include "holdfast/holdfast.h"

/* What the scenarios of a node share: one store, what it says on stdout, how it is killed. */
extern struct hf_error wrong;
extern struct hf_store *store;
extern const struct hf_curve_options at_once; /* no wait between executions */
extern bool mended; /* jobs that are bad go well from now on */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void must(int code, const char *what); /* 0, or it says why not and ends */
void open_it(void);
void open_to_be_killed(long nth); /* at that call of the store, of those from now on; 0 never */
void close_counted(void);         /* says how many there were */
enum hf_result run_ok(struct hf_work *work, void *user);

/* Deaths and what comes after them. False: argv means none of its scenarios. */
bool node_deaths(int argc, char **argv);

#endif
