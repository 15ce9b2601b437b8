/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_FAULT_VFS_H
#define HF_TEST_FAULT_VFS_H

/*
 * A VFS for SQLite over its usual one, in which the Nth call of a kind fails, once or from then on. Made the default by
 * the first arming; unarmed it only counts.
 */
enum fault_kind { FAULT_WRITE, FAULT_SYNC, FAULT_TRUNCATE, FAULT_ANY };

void fault_arm(enum fault_kind kind, long nth, int native, int forever); /* nth 0: none */
void fault_kill(long nth); /* at the Nth call of any kind, or fault_point, the process is killed; 0: only counts */
void fault_point(void);    /* one more place to be killed at */
long fault_seen(void);  /* calls of that kind since it was armed */
int fault_struck(void); /* how many of them failed */

#endif
