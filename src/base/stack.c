/* SPDX-License-Identifier: MIT */
/*
 * Asks a thread for its stack by a signal. The handler must do nothing but what a signal handler may, at any instruction of
 * a thread that holds whatever locks: it walks its own stack into memory that is there already, and tells. backtrace()
 * loads what it needs at its first call, which is made beforehand.
 */
#include "base/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "holdfast/error.h"

#if defined __has_include
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define CAN_WALK 1
#endif
#endif
#ifndef CAN_WALK
#define CAN_WALK 0
static int backtrace(void **frames, int count) {
    (void)frames;
    return count - count;
}
#endif

enum { FREE, ASKED, WALKING, WALKED };

static struct {
    _Atomic int signal_number; /* 0: not enabled */
    _Atomic int busy;          /* somebody asks */
    _Atomic int state;
    _Atomic int thread; /* who is asked */
    int count;
    void *frames[HFI_STACK_FRAMES];
    int told; /* an eventfd: the handler is through */
} slot;

static void write_down(int number, siginfo_t *info, void *context) {
    int before = errno, asked = ASKED;
    (void)number;
    (void)info;
    (void)context;
    if (atomic_load(&slot.thread) == (int)syscall(SYS_gettid) && atomic_compare_exchange_strong(&slot.state, &asked, WALKING)) {
        slot.count = backtrace(slot.frames, HFI_STACK_FRAMES);
        atomic_store(&slot.state, WALKED);
        uint64_t one = 1;
        ssize_t written = write(slot.told, &one, sizeof one);
        (void)written;
    }
    errno = before;
}

int hfi_stack_enable(int signal_number) {
    struct sigaction now, wanted = {.sa_sigaction = write_down, .sa_flags = SA_RESTART | SA_SIGINFO};
    void *frames[4];
    int none = 0;
    if (!CAN_WALK)
        return HF_ENOTSUP;
    if (sigaction(signal_number, NULL, &now) != 0)
        return HF_EINVAL;
    if (!atomic_compare_exchange_strong(&slot.signal_number, &none, -1))
        return none == signal_number ? 0 : HF_EEXIST;
    if (now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL) {
        atomic_store(&slot.signal_number, 0);
        return HF_EEXIST;
    }
    backtrace(frames, 4); /* what it loads, it loads now */
    slot.told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigemptyset(&wanted.sa_mask);
    bool failed = slot.told < 0 || sigaction(signal_number, &wanted, NULL) != 0;
    atomic_store(&slot.signal_number, failed ? 0 : signal_number);
    return failed ? HF_EINVAL : 0;
}

void hfi_stack_listen(int *heard) {
    int number = atomic_load_explicit(&slot.signal_number, memory_order_relaxed);
    sigset_t one;
    if (number <= 0 || *heard == number)
        return;
    *heard = number;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Until it was told. False: not within the time. */
static bool wait_told(int wait_ms) {
    struct pollfd told = {.fd = slot.told, .events = POLLIN};
    uint64_t count;
    return poll(&told, 1, wait_ms) == 1 && read(slot.told, &count, sizeof count) == (ssize_t)sizeof count;
}

static size_t ask(int thread, void **frames, int wait_ms) {
    int number = atomic_load(&slot.signal_number), asked = ASKED;
    if (number <= 0 || thread <= 0)
        return 0;
    atomic_store(&slot.thread, thread);
    atomic_store(&slot.state, ASKED);
    if (syscall(SYS_tgkill, getpid(), thread, number) != 0) {
        atomic_store(&slot.state, FREE);
        return 0;
    }
    /* Whoever comes too late finds nothing to do; whoever has begun is through in a moment. */
    if (!wait_told(wait_ms) && (atomic_compare_exchange_strong(&slot.state, &asked, FREE) || !wait_told(wait_ms)))
        return 0;
    size_t count = slot.count > 1 ? (size_t)slot.count - 1 : 0; /* the first is the handler */
    memcpy(frames, slot.frames + 1, count * sizeof *frames);
    atomic_store(&slot.state, FREE);
    return count;
}

size_t hfi_stack_of(int thread, void *frames[HFI_STACK_FRAMES], int wait_ms) {
    int nobody = 0;
    if (!atomic_compare_exchange_strong(&slot.busy, &nobody, 1))
        return 0;
    size_t count = ask(thread, frames, wait_ms);
    if (atomic_load(&slot.state) != WALKING) /* else it still writes into the slot: nobody asks any more */
        atomic_store(&slot.busy, 0);
    return count;
}

void hfi_stack_print(void *const *frames, size_t count, char *text, size_t room) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && length < room - 1; i++) {
        Dl_info info;
        const char *module = "?";
        uintptr_t base = 0;
        char function[128] = "";
        if (dladdr(frames[i], &info) != 0 && info.dli_fname != NULL) {
            const char *slash = strrchr(info.dli_fname, '/');
            module = slash ? slash + 1 : info.dli_fname;
            base = (uintptr_t)info.dli_fbase;
            if (info.dli_sname != NULL)
                snprintf(function, sizeof function, "(%s+0x%zx)", info.dli_sname,
                         (size_t)((uintptr_t)frames[i] - (uintptr_t)info.dli_saddr));
        }
        int more = snprintf(text + length, room - length, "%s%s+0x%zx%s", i > 0 ? " < " : "", module,
                            (size_t)((uintptr_t)frames[i] - base), function);
        length = more < 0 || (size_t)more >= room - length ? room - 1 : length + (size_t)more;
    }
}
