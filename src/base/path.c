/* SPDX-License-Identifier: MIT */
/*
 * Which paths name one file: by the file itself when it is there, else by its folder and its name. Must never make or
 * open anything. Any thread.
 */
#include "base/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder's real path and the name; the path as it is when there is no such folder. */
static void resolve(const char *path, char *whole) {
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    snprintf(whole, PATH_MAX, "%s", path);
    if (length >= sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", length > 0 ? (int)length : 1, length > 0 ? path : ".");
    if (realpath(folder, real) == NULL || strlen(real) + 1 + strlen(name) >= PATH_MAX)
        return;
    size_t end = strcmp(real, "/") == 0 ? 0 : strlen(real);
    memcpy(whole, real, end);
    whole[end] = '/';
    memcpy(whole + end + 1, name, strlen(name) + 1);
}

bool hfi_path_same(const char *one, const char *other) {
    struct stat first, second;
    char wholes[2][PATH_MAX];
    bool there = stat(one, &first) == 0;
    if (there != (stat(other, &second) == 0))
        return false;
    if (there)
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
    resolve(one, wholes[0]);
    resolve(other, wholes[1]);
    return strcmp(wholes[0], wholes[1]) == 0;
}
