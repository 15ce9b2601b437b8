/* SPDX-License-Identifier: MIT */
/*
 * What most commands begin with: the configuration, then the store it names. Must never open another store than the one
 * asked for: a URL that is empty, as from an unset variable, is refused by the readers of flags and of the
 * configuration [S3.22]. The main thread's.
 */
#include "program/session.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/units.h"
#include "program/output.h"

#define DEFAULT_STORE "sqlite:holdfast.db"
#define PAYLOAD_READ_MAX (1024u * 1024 * 1024)

static int open_store(struct hfi_session *session, bool create) {
    struct hf_store_options store_options = session->config.store_options;
    struct hf_error error;
    hf_error_init(&error);
    store_options.create = create;
    int code = hf_store_open(session->url, &store_options, &session->store, &error);
    if (code == 0)
        return 0;
    if (!error.code)
        error.code = code;
    return hfi_complain(&error);
}

/* Errors stop a start before anything is opened; warnings are told. */
static int check_ladder(struct hfi_session *session) {
    struct hfi_check check;
    struct hf_error error;
    char text[1600], clean[2400];
    hfi_config_check(&session->config, &check);
    for (const struct hfi_problem *problem = session->config.problems.first; problem; problem = problem->next) {
        hfi_problem_error(&session->config.problems, problem, &error);
        hf_error_print(&error, text, sizeof text);
        if (!problem->is_error && !hfi_manner()->quiet)
            fprintf(stderr, "holdfast: warning: %s\n", hfi_printable(clean, sizeof clean, text));
    }
    return session->config.problems.errors > 0 ? hfi_config_complain(&session->config) : 0;
}

int hfi_session_open(struct hfi_session *session, const struct hfi_options *options, unsigned wanted) {
    unsigned flags = (wanted & HFI_SESSION_SECRETS ? HFI_CONFIG_SECRETS : 0) |
                     (wanted & (HFI_SESSION_STORE | HFI_SESSION_CREATE) && !options->store ? HFI_CONFIG_STORE : 0);
    memset(session, 0, sizeof *session);
    if (hfi_config_load(&session->config, options->config, flags) != 0)
        return hfi_config_complain(&session->config);
    int code = wanted & HFI_SESSION_CHECK ? check_ladder(session) : 0;
    if (code != 0 || !(wanted & (HFI_SESSION_STORE | HFI_SESSION_CREATE)))
        return code;
    session->url = options->store ? options->store : session->config.store ? session->config.store : DEFAULT_STORE;
    return open_store(session, wanted & HFI_SESSION_CREATE);
}

void hfi_session_close(struct hfi_session *session) {
    hf_store_close(session->store);
    hfi_config_free(&session->config);
}

const char *hfi_actor(const struct hfi_options *options) {
    const struct hfi_flag *flag = options->command->flags;
    const struct passwd *user = NULL;
    while (flag && flag->name && strcmp(flag->name, "actor") != 0)
        flag++;
    if (flag && flag->name && hfi_flag(options, "actor")->text)
        return hfi_flag(options, "actor")->text;
    const char *named = getenv("SUDO_USER");
    if (!named || !*named) {
        user = getpwuid(getuid());
        named = user ? user->pw_name : NULL;
    }
    return named && hf_text_valid(named, strlen(named)) ? named : "unknown";
}

/* Is there more in it than we take? Of a file it can be told before it is read. */
static bool is_too_large(FILE *file, size_t read) {
    struct stat status;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > (off_t)PAYLOAD_READ_MAX)
        return true;
    return read >= PAYLOAD_READ_MAX && fgetc(file) != EOF;
}

int hfi_payload_file(struct hfi_session *session, const char *path, struct hfi_payload *payload) {
    bool from_stdin = strcmp(path, "-") == 0;
    FILE *file = from_stdin ? stdin : fopen(path, "re");
    size_t length = 0, room = 0;
    char *bytes = NULL;
    if (!file)
        return hfi_usage(path, "check the path", "%s", strerror(errno));
    bool larger = is_too_large(file, 0);
    while (!larger && !feof(file) && !ferror(file) && length < PAYLOAD_READ_MAX) {
        if (length == room) {
            room = room ? room * 2 : 65536;
            bytes = hfi_grow(bytes, room);
        }
        length += fread(bytes + length, 1, room - length, file);
    }
    int failed = ferror(file) ? errno : larger || is_too_large(file, length) ? EFBIG : 0;
    if (!from_stdin)
        fclose(file);
    if (!failed)
        payload->data = hfi_arena_copy(&session->config.arena, bytes, length);
    payload->length = length;
    hfi_release(bytes);
    if (failed == EFBIG)
        return hfi_usage(path, "hand on where it is instead", "it is larger than 1 GiB");
    return failed ? hfi_usage(path, "check the file", "%s", strerror(failed)) : 0;
}
