/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_STACK_H
#define HFI_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The stack of another thread of this process: a signal makes that thread write it down. Threads that may be asked let the
 * signal through; all else about signals is the program's. Nothing of it works, or does harm, before hfi_stack_enable.
 */
#define HFI_STACK_FRAMES 64

/* Of the whole process, once; the same signal again is fine. HF_EEXIST: the program has a handler for it, or another
 * signal was enabled; HF_EINVAL: no such signal; HF_ENOTSUP: this C library cannot walk a stack. */
int hfi_stack_enable(int signal_number);

/* This thread may be asked from now on. Cheap when it was said before: `*heard` is the caller's memory of it, 0 at first. */
void hfi_stack_listen(int *heard);

/* Frames of the thread with the kernel's number `thread`, innermost first. 0: it did not answer within `wait_ms`, or cannot.
 * One caller at a time; the others get 0. */
size_t hfi_stack_of(int thread, void *frames[HFI_STACK_FRAMES], int wait_ms);

/* "module+0x1f(function+0x3) < …", cut at `room`. Takes locks of the dynamic linker. */
void hfi_stack_print(void *const *frames, size_t count, char *text, size_t room);

#endif
