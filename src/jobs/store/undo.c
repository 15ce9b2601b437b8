/* SPDX-License-Identifier: MIT */
/*
 * What an operation looked like before it ran. Frees outputs of operations that were rolled back and restores what they
 * changed in place, so that a second try starts from the same. Writer thread.
 */
#include "jobs/store/undo.h"

#include "base/alloc.h"

struct hfi_undo_entry {
    struct hfi_op *op;
    int64_t after_id;                  /* SWEEP, RELEASE, READMIT */
    struct hfi_downstream_state state; /* DOWNSTREAM */
    struct hfi_walk walk;              /* UNUSED */
};

int hfi_undo_note(struct hfi_undo *undo, struct hfi_op *op) {
    if (op->kind == HFI_OP_PUT || op->kind == HFI_OP_APPLY)
        return 0; /* most of all, and nothing to put back */
    if (undo->count == undo->room) {
        size_t room = undo->room > 0 ? undo->room * 2 : 8;
        struct hfi_undo_entry *entries = hfi_realloc(undo->entries, room * sizeof *entries);
        if (!entries)
            return HF_ENOMEM;
        undo->entries = entries;
        undo->room = room;
    }
    struct hfi_undo_entry *entry = &undo->entries[undo->count++];
    void *whole = op;
    entry->op = op;
    if (op->kind == HFI_OP_SWEEP)
        entry->after_id = ((struct hfi_op_sweep *)whole)->after_id;
    if (op->kind == HFI_OP_RELEASE)
        entry->after_id = ((struct hfi_op_release *)whole)->after_id;
    if (op->kind == HFI_OP_UNUSED)
        entry->walk = ((struct hfi_op_unused *)whole)->walk;
    if (op->kind == HFI_OP_READMIT)
        entry->after_id = ((struct hfi_op_readmit *)whole)->after_id;
    if (op->kind == HFI_OP_DOWNSTREAM)
        entry->state = ((struct hfi_op_downstream *)whole)->state;
    return 0;
}

static void drop_claim(struct hfi_op_claim *op) {
    for (size_t i = 0; i < op->count; i++)
        hfi_free(op->jobs[i]);
    op->count = 0;
}

static void restore(struct hfi_undo_entry *entry) {
    void *op = entry->op;
#define DROP(type, pointer, number)                                                                                    \
    do {                                                                                                               \
        hfi_free(((struct type *)op)->pointer);                                                                        \
        ((struct type *)op)->pointer = NULL;                                                                           \
        ((struct type *)op)->number = 0;                                                                               \
    } while (0)
    switch (entry->op->kind) {
    case HFI_OP_BEAT:
        DROP(hfi_op_beat, owned, owned_count);
        break;
    case HFI_OP_NODES:
        DROP(hfi_op_nodes, rows, count);
        break;
    case HFI_OP_LANES:
        DROP(hfi_op_lanes, rows, count);
        break;
    case HFI_OP_CLAIM:
        drop_claim(op);
        break;
    case HFI_OP_SWEEP:
        DROP(hfi_op_sweep, notes, note_count);
        ((struct hfi_op_sweep *)op)->after_id = entry->after_id;
        break;
    case HFI_OP_RELEASE:
        ((struct hfi_op_release *)op)->after_id = entry->after_id;
        break;
    case HFI_OP_READMIT:
        ((struct hfi_op_readmit *)op)->after_id = entry->after_id;
        break;
    case HFI_OP_QUARANTINE:
        DROP(hfi_op_quarantine, notes, note_count);
        break;
    case HFI_OP_ALERTS:
        DROP(hfi_op_alerts, rows, count);
        DROP(hfi_op_alerts, causes, cause_count);
        break;
    case HFI_OP_UNUSED:
        ((struct hfi_op_unused *)op)->walk = entry->walk;
        break;
    case HFI_OP_DOWNSTREAM:
        ((struct hfi_op_downstream *)op)->state = entry->state;
        break;
    default:
        break;
    }
#undef DROP
}

void hfi_undo_all(struct hfi_undo *undo) {
    for (size_t i = 0; i < undo->count; i++)
        restore(&undo->entries[i]);
}

void hfi_undo_free(struct hfi_undo *undo) {
    hfi_free(undo->entries);
    undo->entries = NULL;
    undo->count = undo->room = 0;
}
