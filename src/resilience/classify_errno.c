/* SPDX-License-Identifier: MIT */
/*
 * Every errno of Linux by name. Without the call behind it an errno proves little: only a refused connection and a
 * socket that could not be made prove that nothing was sent. What the first table does not list is transient [S0.3].
 * Pure, any thread.
 */
#include "resilience/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* clang-format off */
/* X(NAME, effect, stage, sent) */
#define ERRNO_MAP(X) \
    X(EPERM, REFUSED, LOCAL, MAYBE) X(ENOENT, REFUSED, LOCAL, MAYBE) X(ESRCH, REFUSED, LOCAL, MAYBE) \
    X(EINTR, BUSY, LOCAL, MAYBE) X(EIO, DOWN, WAIT, MAYBE) X(ENXIO, REFUSED, LOCAL, MAYBE) \
    X(E2BIG, REFUSED, LOCAL, MAYBE) X(ENOEXEC, REFUSED, LOCAL, MAYBE) X(EBADF, REFUSED, LOCAL, MAYBE) \
    X(ECHILD, REFUSED, LOCAL, MAYBE) X(EAGAIN, BUSY, LOCAL, MAYBE) X(ENOMEM, BUSY, LOCAL, MAYBE) \
    X(EACCES, REFUSED, LOCAL, MAYBE) X(EFAULT, REFUSED, LOCAL, MAYBE) X(ENOTBLK, REFUSED, LOCAL, MAYBE) \
    X(EBUSY, BUSY, LOCAL, MAYBE) X(EEXIST, REFUSED, LOCAL, MAYBE) X(EXDEV, REFUSED, LOCAL, MAYBE) \
    X(ENODEV, REFUSED, LOCAL, MAYBE) X(ENOTDIR, REFUSED, LOCAL, MAYBE) X(EISDIR, REFUSED, LOCAL, MAYBE) \
    X(EINVAL, REFUSED, LOCAL, MAYBE) X(ENFILE, BUSY, LOCAL, NO) X(EMFILE, BUSY, LOCAL, NO) \
    X(ENOTTY, REFUSED, LOCAL, MAYBE) X(ETXTBSY, BUSY, LOCAL, MAYBE) X(EFBIG, REFUSED, LOCAL, MAYBE) \
    X(ENOSPC, DOWN_LATER, WAIT, MAYBE) X(ESPIPE, REFUSED, LOCAL, MAYBE) X(EROFS, DOWN_LATER, WAIT, MAYBE) \
    X(EMLINK, REFUSED, LOCAL, MAYBE) X(EPIPE, DOWN, WAIT, MAYBE) X(EDOM, REFUSED, LOCAL, MAYBE) \
    X(ERANGE, REFUSED, LOCAL, MAYBE) X(EDEADLK, BUSY, LOCAL, MAYBE) X(ENAMETOOLONG, REFUSED, LOCAL, MAYBE) \
    X(ENOLCK, BUSY, LOCAL, MAYBE) X(ENOSYS, REFUSED, LOCAL, MAYBE) X(ENOTEMPTY, REFUSED, LOCAL, MAYBE) \
    X(ELOOP, REFUSED, LOCAL, MAYBE) X(EBADE, REFUSED, LOCAL, MAYBE) X(EBADR, REFUSED, LOCAL, MAYBE) \
    X(EBADRQC, REFUSED, LOCAL, MAYBE) X(EBADSLT, REFUSED, LOCAL, MAYBE) X(ETIME, BUSY, LOCAL, MAYBE) \
    X(ENONET, DOWN, WAIT, MAYBE) X(ENOLINK, DOWN, WAIT, MAYBE) X(ECOMM, DOWN, WAIT, MAYBE) \
    X(EPROTO, DOWN, WAIT, MAYBE) X(EBADMSG, DOWN, WAIT, MAYBE) X(EOVERFLOW, REFUSED, LOCAL, MAYBE) \
    X(EBADFD, REFUSED, LOCAL, MAYBE) X(ELIBACC, BUSY, LOCAL, MAYBE) X(ELIBBAD, REFUSED, LOCAL, MAYBE) \
    X(EILSEQ, REFUSED, LOCAL, MAYBE) X(EUSERS, BUSY, LOCAL, MAYBE) X(ENOTSOCK, REFUSED, LOCAL, MAYBE) \
    X(EDESTADDRREQ, REFUSED, LOCAL, MAYBE) X(EMSGSIZE, REFUSED, LOCAL, MAYBE) X(EPROTOTYPE, REFUSED, LOCAL, MAYBE) \
    X(ENOPROTOOPT, REFUSED, LOCAL, MAYBE) X(EPROTONOSUPPORT, REFUSED, LOCAL, MAYBE) \
    X(ESOCKTNOSUPPORT, REFUSED, LOCAL, MAYBE) X(ENOTSUP, REFUSED, LOCAL, MAYBE) \
    X(EPFNOSUPPORT, REFUSED, LOCAL, MAYBE) X(EAFNOSUPPORT, REFUSED, LOCAL, MAYBE) X(EADDRINUSE, BUSY, LOCAL, NO) \
    X(EADDRNOTAVAIL, BUSY, LOCAL, NO) X(ENETDOWN, DOWN, CONNECT, MAYBE) X(ENETUNREACH, DOWN, CONNECT, MAYBE) \
    X(ENETRESET, DOWN, WAIT, MAYBE) X(ECONNABORTED, DOWN, WAIT, MAYBE) X(ECONNRESET, DOWN, WAIT, MAYBE) \
    X(ENOBUFS, BUSY, LOCAL, MAYBE) X(EISCONN, REFUSED, LOCAL, MAYBE) X(ENOTCONN, DOWN, WAIT, MAYBE) \
    X(ESHUTDOWN, DOWN, WAIT, MAYBE) X(ETIMEDOUT, DOWN, WAIT, MAYBE) X(ECONNREFUSED, DOWN, CONNECT, NO) \
    X(EHOSTDOWN, DOWN, CONNECT, MAYBE) X(EHOSTUNREACH, DOWN, CONNECT, MAYBE) X(EALREADY, BUSY, LOCAL, MAYBE) \
    X(EINPROGRESS, BUSY, LOCAL, MAYBE) X(ESTALE, DOWN, WAIT, MAYBE) X(EUCLEAN, DOWN_LATER, WAIT, MAYBE) \
    X(EREMOTEIO, DOWN, WAIT, MAYBE) X(EDQUOT, DOWN_LATER, WAIT, MAYBE) X(ENOMEDIUM, DOWN_LATER, WAIT, MAYBE) \
    X(ECANCELED, BUSY, LOCAL, MAYBE)

/* Known by name only. */
#define ERRNO_OTHER_MAP(X) \
    X(ENOMSG) X(EIDRM) X(ECHRNG) X(EL2NSYNC) X(EL3HLT) X(EL3RST) X(ELNRNG) X(EUNATCH) X(ENOCSI) X(EL2HLT) X(EXFULL) \
    X(ENOANO) X(EBFONT) X(ENOSTR) X(ENODATA) X(ENOSR) X(ENOPKG) X(EREMOTE) X(EADV) X(ESRMNT) X(EMULTIHOP) X(EDOTDOT) \
    X(ENOTUNIQ) X(EREMCHG) X(ELIBSCN) X(ELIBMAX) X(ELIBEXEC) X(ERESTART) X(ESTRPIPE) X(ETOOMANYREFS) X(ENOTNAM) \
    X(ENAVAIL) X(EISNAM) X(EMEDIUMTYPE) X(ENOKEY) X(EKEYEXPIRED) X(EKEYREVOKED) X(EKEYREJECTED) X(EOWNERDEAD) \
    X(ENOTRECOVERABLE) X(ERFKILL) X(EHWPOISON)
/* clang-format on */

static const struct row {
    const char *name;
    int number;
    bool listed;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
} table[] = {
#define ROW(name, effect, stage, sent) {#name, name, true, HFI_EFFECT_##effect, HF_STAGE_##stage, HF_SENT_##sent},
    ERRNO_MAP(ROW)
#undef ROW
#define ROW(name) {#name, name, false, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE},
        ERRNO_OTHER_MAP(ROW)
#undef ROW
};

#define ROWS (sizeof table / sizeof *table)

static const struct {
    const char *name;
    int number;
} aliases[] = {{"EWOULDBLOCK", EWOULDBLOCK}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EDEADLOCK", EDEADLOCK}};

static const struct row *find(int number) {
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

void hf_classify_errno(int number, struct hf_outcome *outcome) {
    static const struct row unknown = {"unknown", 0, false, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE};
    char type[HFI_ERROR_TYPE_MAX];
    const struct row *row = find(number);
    if (number == 0) {
        hfi_effect_apply(outcome, HFI_EFFECT_OK, HF_STAGE_WAIT, HF_SENT_YES, 0, "", "errno.0");
        return;
    }
    row = row != NULL ? row : &unknown;
    snprintf(type, sizeof type, "errno.%s", row->name);
    hfi_effect_apply(outcome, row->effect, row->stage, row->sent, number, type, type);
    outcome->guess = !row->listed;
    hfi_outcome_message(outcome, "error number %d (%s)", number, row->name);
}

static void show(size_t index, struct hf_rule_row *row) {
    char rule[HFI_ERROR_TYPE_MAX];
    if (index == 0) {
        hfi_row_fill(row, HFI_EFFECT_OK, HF_STAGE_WAIT, HF_SENT_YES, "errno.0", "no error", "0");
    } else if (index == ROWS + 1) {
        hfi_row_rest(row, "errno.unknown");
    } else {
        const struct row *from = &table[index - 1];
        snprintf(rule, sizeof rule, "errno.%s", from->name);
        hfi_row_fill(row, from->effect, from->stage, from->sent, rule, from->listed ? "" : "known by name only", "%s",
                     from->name);
    }
}

const struct hfi_table hfi_table_errno = {
    "errno", "Error numbers of system calls on Linux, by name.", "errno(3)", false, ROWS + 2, show};

int hf_errno_number(const char *name) {
    if (name == NULL)
        return -1;
    int number = hfi_digits(name);
    if (number >= 0)
        return number;
    for (size_t i = 0; i < ROWS; i++)
        if (strcasecmp(name, table[i].name) == 0)
            return table[i].number;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(name, aliases[i].name) == 0)
            return aliases[i].number;
    return -1;
}
