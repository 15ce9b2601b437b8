/* SPDX-License-Identifier: MIT */
/*
 * Makes a child without forking a large host, as posix_spawn does, with what that cannot: resource limits of its own, and an
 * end with the node's. The child shares our memory until it runs its program, so it must call nothing but what a signal
 * handler may, never return, and never write to what the node has open. Loop thread, which waits for it, and with which it dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/kinds/exec.h"

#define LIMITS 4
#define REPORT 3 /* in the child: where it says why it runs no program; closed by the program */

struct limit {
    int resource;
    struct rlimit value;
};

struct plan {
    const struct hfi_spawn *spawn;
    struct limit limits[LIMITS];
    int count;
    int report;
    pid_t parent;
};

/* `more`: how far behind the soft limit the hard one is. Never above what this process has itself. */
static void add(struct plan *plan, int resource, uint64_t wanted, rlim_t more) {
    struct limit *limit = &plan->limits[plan->count];
    if (wanted == 0 || getrlimit(resource, &limit->value) != 0)
        return;
    rlim_t ceiling = limit->value.rlim_max, soft = (rlim_t)wanted, hard = (rlim_t)wanted + more;
    limit->resource = resource;
    limit->value.rlim_cur = ceiling == RLIM_INFINITY || soft < ceiling ? soft : ceiling;
    limit->value.rlim_max = ceiling == RLIM_INFINITY || hard < ceiling ? hard : ceiling;
    plan->count++;
}

static int move_to(int from, int to) {
    return dup2(from, to) < 0 ? errno : 0;
}

/* In the child; 0 or an errno, to be told on `report`: REPORT is one of the node's files until ours has been moved there. */
static int arrange(const struct plan *plan, int *report) {
    const struct hfi_spawn *spawn = plan->spawn;
    struct sigaction usual;
    sigset_t none;
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &usual, NULL); /* those that cannot be changed are as they should be */
    /* Of the parent's thread, so also when that ended a moment ago; a set-user-id program is not bound by it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setsid() < 0)
        return errno;
    if (getppid() != plan->parent)
        return ESRCH;
    int code = move_to(spawn->in, 0);
    if (code == 0)
        code = move_to(spawn->out, 1);
    if (code == 0)
        code = move_to(spawn->err, 2);
    if (code == 0)
        code = plan->report == REPORT ? 0 : move_to(plan->report, REPORT);
    if (code != 0)
        return code;
    *report = REPORT;
    if (fcntl(REPORT, F_SETFD, FD_CLOEXEC) != 0)
        return errno;
    closefrom(REPORT + 1);
    if (chdir(spawn->directory) != 0)
        return errno;
    for (int i = 0; i < plan->count; i++)
        if (setrlimit((__rlimit_resource_t)plan->limits[i].resource, &plan->limits[i].value) != 0)
            return errno;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return 0;
}

static _Noreturn void run(const struct plan *plan) {
    int report = plan->report, code = arrange(plan, &report);
    if (code == 0) {
        execve(plan->spawn->command[0], plan->spawn->command, plan->spawn->variables);
        code = errno;
    }
    ssize_t written = write(report, &code, sizeof code);
    (void)written;
    _exit(127);
}

/* A signal that came to the child before it is itself would run our handlers in it. */
static pid_t start(const struct plan *plan) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0)
        run(plan);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

int hfi_spawn(const struct hfi_spawn *spawn, const struct hf_type_options *type, pid_t *pid) {
    struct plan plan = {.spawn = spawn, .parent = getpid()};
    int ends[2], code = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    if (ends[1] < REPORT) { /* else moving the others to 0, 1, 2 would hit it */
        int lifted = fcntl(ends[1], F_DUPFD_CLOEXEC, REPORT);
        code = lifted < 0 ? errno : 0;
        close(ends[1]);
        ends[1] = lifted;
    }
    plan.report = ends[1];
    add(&plan, RLIMIT_AS, (uint64_t)type->max_memory, 0);
    add(&plan, RLIMIT_CPU, (uint64_t)(type->max_cpu_ms / 1000) + (type->max_cpu_ms % 1000 > 0), 1);
    add(&plan, RLIMIT_NOFILE, type->max_files, 0);
    add(&plan, RLIMIT_NPROC, type->max_processes, 0);
    pid_t made = code == 0 ? start(&plan) : -1;
    if (code == 0 && made < 0)
        code = errno;
    if (ends[1] >= 0)
        close(ends[1]);
    int told = 0;
    while (made > 0 && read(ends[0], &told, sizeof told) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    if (made > 0 && told == 0)
        *pid = made;
    while (told != 0 && waitpid(made, NULL, 0) < 0 && errno == EINTR)
        continue;
    return code != 0 ? code : told;
}
