/* SPDX-License-Identifier: MIT */
/*
 * What a result code of SQLite means for us. Must never answer success for a failure. Pure.
 */
#include "jobs/store/codes.h"

#include <sqlite3.h>

#include "holdfast/error.h"

int hfi_sqlite_code(int native) {
    if (native == SQLITE_IOERR_SHMSIZE) /* the log's index could not grow: SQLite keeps no errno of it */
        return HF_ENOSPC;
    switch (native & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOMEM:
        return HF_ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return HF_EBUSY;
    case SQLITE_FULL:
        return HF_ENOSPC;
    case SQLITE_CORRUPT:
        return HF_ECORRUPT;
    case SQLITE_NOTADB:
        return HF_EFOREIGN;
    case SQLITE_TOOBIG:
        return HF_ETOOBIG;
    case SQLITE_CONSTRAINT:
        return HF_EEXIST;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return HF_EPERM;
    case SQLITE_INTERRUPT:
    case SQLITE_ABORT:
        return HF_ECANCELED;
    default: /* IOERR, CANTOPEN, READONLY, and what only a bug or a foreign schema can cause */
        return HF_EIO;
    }
}
