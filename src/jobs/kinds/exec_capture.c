/* SPDX-License-Identifier: MIT */
/*
 * Keeps the two ends of what a process says: the beginning often names the cause, the end the result. Must never hold
 * more than its room, whatever floods in. Loop thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "jobs/kinds/exec.h"

#define CLEAN_HALF ((size_t)(HFI_DETAIL_MAX / 2 - 64)) /* of text, beside the line between the halves */

void hfi_capture_init(struct hfi_capture *capture, size_t head) {
    memset(capture, 0, sizeof *capture);
    hfi_bytes_init(&capture->head, head);
}

void hfi_capture_free(struct hfi_capture *capture) {
    hfi_bytes_free(&capture->head);
    hfi_free(capture->tail);
    capture->tail = NULL;
}

void hfi_capture_add(struct hfi_capture *capture, const char *data, size_t length, bool with_tail) {
    capture->total += length;
    size_t room = capture->head.max - capture->head.length;
    size_t first = length < room ? length : room;
    hfi_bytes_add(&capture->head, data, first);
    data += first;
    length -= first;
    if (length == 0 || !with_tail)
        return;
    if (!capture->tail)
        capture->tail = hfi_alloc(HFI_CAPTURE_HALF);
    if (!capture->tail)
        return; /* the head has to do */
    if (length > HFI_CAPTURE_HALF) {
        data += length - HFI_CAPTURE_HALF;
        length = HFI_CAPTURE_HALF;
    }
    size_t until_end = HFI_CAPTURE_HALF - capture->at;
    size_t piece = length < until_end ? length : until_end;
    memcpy(capture->tail + capture->at, data, piece);
    memcpy(capture->tail, data + piece, length - piece);
    capture->at = (capture->at + length) % HFI_CAPTURE_HALF;
}

/* The tail in one piece; its length. `to` has room for HFI_CAPTURE_HALF. */
static size_t unroll(const struct hfi_capture *capture, char *to) {
    uint64_t beyond = capture->total - capture->head.length;
    if (!capture->tail || beyond == 0)
        return 0;
    if (beyond < HFI_CAPTURE_HALF) {
        memcpy(to, capture->tail, (size_t)beyond);
        return (size_t)beyond;
    }
    memcpy(to, capture->tail + capture->at, HFI_CAPTURE_HALF - capture->at);
    memcpy(to + HFI_CAPTURE_HALF - capture->at, capture->tail, capture->at);
    return HFI_CAPTURE_HALF;
}

/* The end of a clean text, at most `room` bytes, from the beginning of a code point. */
static const char *end_of(const char *text, size_t length, size_t room) {
    if (length <= room)
        return text;
    text += length - room;
    while (((unsigned char)*text & 0xc0) == 0x80)
        text++;
    return text;
}

/* Both halves into `text`; `work` has room for the raw tail, `clean` for it cleaned. */
static void join(const struct hfi_capture *capture, char *text, char *work, char *clean) {
    size_t tail = unroll(capture, work);
    uint64_t dropped = capture->total - capture->head.length - tail;
    bool whole = dropped == 0;
    size_t room = whole && tail == 0 ? HFI_DETAIL_MAX : CLEAN_HALF;
    size_t length = hfi_text_clean(text, room + 1, capture->head.data, capture->head.length);
    if (tail == 0 && whole)
        return;
    if (!whole)
        length += (size_t)snprintf(text + length, 64, "\n[... %" PRIu64 " bytes left out ...]\n", dropped);
    size_t cleaned = hfi_text_clean(clean, HFI_CAPTURE_HALF * 3 + 1, work, tail);
    strcpy(text + length, end_of(clean, cleaned, CLEAN_HALF));
}

char *hfi_capture_text(const struct hfi_capture *capture) {
    if (capture->total == 0)
        return NULL;
    char *text = hfi_alloc(HFI_DETAIL_MAX + 1);
    char *work = hfi_alloc(HFI_CAPTURE_HALF);
    char *clean = hfi_alloc(HFI_CAPTURE_HALF * 3 + 1);
    if (text && work && clean) {
        join(capture, text, work, clean);
        char *fitting = hfi_strdup(text); /* most say little, and it is kept until the commit */
        hfi_free(text);
        text = fitting;
    } else {
        hfi_free(text);
        text = NULL;
    }
    hfi_free(work);
    hfi_free(clean);
    return text;
}

void hfi_capture_last_line(const struct hfi_capture *capture, char *line, size_t room) {
    char end[256];
    size_t length = capture->tail ? 0 : capture->head.length;
    const char *text = capture->head.data;
    if (capture->tail) { /* the last bytes of the ring */
        uint64_t beyond = capture->total - capture->head.length;
        length = beyond < sizeof end ? (size_t)beyond : sizeof end;
        for (size_t i = 0; i < length; i++)
            end[i] = capture->tail[(capture->at + HFI_CAPTURE_HALF - length + i) % HFI_CAPTURE_HALF];
        text = end;
    }
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r' || text[length - 1] == ' '))
        length--;
    size_t from = length;
    while (from > 0 && text[from - 1] != '\n' && length - from < sizeof end)
        from--;
    hfi_text_clean(line, room, text + from, length - from);
}
