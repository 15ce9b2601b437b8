/* SPDX-License-Identifier: MIT */
/*
 * Finds and kills what the exec jobs of a dead node have left running on this host, children that forked away included.
 * Must never hit a process that does not carry the very mark of that node: each is held by a pidfd before it is looked at.
 * Any thread.
 */
#include "jobs/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 16384
#define LONGEST 160 /* of an entry that is looked for, and its NUL */

char *hfi_leftovers_mark(char *mark, const char *uuid, int64_t node) {
    snprintf(mark, HFI_MARK_ROOM, "%s-%" PRId64, uuid, node);
    return mark;
}

static ssize_t read_more(int file, char *to, size_t room) {
    ssize_t length;
    do
        length = read(file, to, room);
    while (length < 0 && errno == EINTR);
    return length;
}

static bool is_one(const char *text, size_t size, const char *const *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strlen(entries[i]) + 1 == size && memcmp(text, entries[i], size) == 0)
            return true;
    return false;
}

/* Is one of them one of the texts, each ended by a NUL, of the file? */
static bool holds(int file, const char *const *entries, size_t count) {
    char buffer[PIECE];
    size_t kept = 0;
    bool at_begin = true; /* of a text, as far as what was kept goes */
    ssize_t length;
    while ((length = read_more(file, buffer + kept, sizeof buffer - kept)) > 0) {
        size_t end = kept + (size_t)length, at = 0;
        const char *stop;
        while ((stop = memchr(buffer + at, '\0', end - at)) != NULL) {
            size_t next = (size_t)(stop - buffer) + 1;
            if (at_begin && is_one(buffer + at, next - at, entries, count))
                return true;
            at = next;
            at_begin = true;
        }
        kept = end - at;
        if (kept >= LONGEST) { /* longer than what is looked for: only its end matters */
            at_begin = false;
            kept = 0;
        }
        memmove(buffer, buffer + at, kept);
    }
    return false;
}

static bool carries(int proc, const char *pid, const char *const *entries, size_t count) {
    char name[NAME_MAX + sizeof "/environ"];
    snprintf(name, sizeof name, "%s/environ", pid);
    int file = openat(proc, name, O_RDONLY | O_CLOEXEC);
    bool found = file >= 0 && holds(file, entries, count);
    if (file >= 0)
        close(file);
    return found;
}

static bool kill_if_marked(int proc, const char *pid, const char *const *entries, size_t count) {
    struct stat about;
    if (fstatat(proc, pid, &about, 0) != 0 || about.st_uid != geteuid())
        return false;
    int process = pidfd_open((pid_t)atoi(pid), 0);
    if (process < 0)
        return false;
    bool killed = carries(proc, pid, entries, count) && pidfd_send_signal(process, SIGKILL, NULL, 0) == 0;
    close(process);
    return killed;
}

char *hfi_leftovers_run(char *entry, const char *uuid, int64_t job, int64_t epoch) {
    snprintf(entry, HFI_RUN_MARK_ROOM, HFI_RUN_MARK_NAME "=%.60s-%" PRId64 ".%" PRId64, uuid, job, epoch);
    return entry;
}

size_t hfi_leftovers_kill_marked(const char *const *entries, size_t count) {
    size_t killed = 0;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return 0;
    for (const struct dirent *item; (item = readdir(proc)) != NULL;)
        if (isdigit((unsigned char)item->d_name[0]) && strlen(item->d_name) < 12 && atoi(item->d_name) != getpid())
            killed += kill_if_marked(dirfd(proc), item->d_name, entries, count);
    closedir(proc);
    return killed;
}

size_t hfi_leftovers_kill(const char *uuid, int64_t node) {
    char mark[HFI_MARK_ROOM], entry[LONGEST];
    const char *const entries[] = {entry};
    snprintf(entry, sizeof entry, HFI_MARK_NAME "=%s", hfi_leftovers_mark(mark, uuid, node));
    return hfi_leftovers_kill_marked(entries, 1);
}
