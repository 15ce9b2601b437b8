/* SPDX-License-Identifier: MIT */
/*
 * Decodes gzip and deflate bodies. libcurl takes a stream that stops within for a whole one where the Content-Length
 * fits the cut, and refuses a gzip of several members; a body that is not whole must never pass for an answer. Must
 * hold no more than a buffer for each coding, and end a body that would make us work without end. On the scheduler's
 * thread.
 */
#include "resilience/http/unpack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/alloc.h"
#include "resilience/http/engine.h"

#define CODINGS_MAX 3 /* one over the other; more is an attack */
#define PIECE 16384

/* One coding. Which of its two forms a deflate has its first two bytes tell. */
struct stage {
    z_stream stream;
    bool is_gzip, ready, ended; /* ended: a whole stream came; another gzip member may follow */
    unsigned char head[2];
    size_t head_length;
    uint64_t taken;
    unsigned char piece[PIECE];
};

struct hfi_unpack {
    CURLcode code; /* what was found, beside a reason; libcurl has but "Failure writing output" for it */
    const char *why;
    size_t count;
    struct stage stages[]; /* in the order of decoding */
};

static void *take(void *user, unsigned count, unsigned size) {
    (void)user;
    return hfi_alloc_array(count, size);
}

static void give_back(void *user, void *memory) {
    (void)user;
    hfi_free(memory);
}

static bool fault(struct hfi_attempt *attempt, CURLcode code, const char *why) {
    attempt->unpack->code = code;
    attempt->unpack->why = why;
    return false;
}

static bool no_memory(struct hfi_attempt *attempt) {
    attempt->reason = HFI_REASON_MEMORY;
    return false;
}

/* The next word of a list, lower or upper case; its length, 0 at the end. */
static size_t next_word(const char **at) {
    *at += strspn(*at, " \t,");
    return strcspn(*at, " \t,;");
}

static bool is_word(const char *at, size_t length, const char *word) {
    return strlen(word) == length && strncasecmp(at, word, length) == 0;
}

/* Takes the words of one Content-Encoding: how many codings they name, or SIZE_MAX if one is none of ours. `gzips` has
   room for CODINGS_MAX. */
static size_t read_codings(const char *value, bool *gzips, size_t count) {
    for (size_t length; (length = next_word(&value)) > 0; value += length) {
        bool is_gzip = is_word(value, length, "gzip") || is_word(value, length, "x-gzip");
        if (is_word(value, length, "identity"))
            continue;
        if ((!is_gzip && !is_word(value, length, "deflate")) || value[length] == ';' || count == CODINGS_MAX)
            return SIZE_MAX;
        gzips[count++] = is_gzip;
    }
    return count;
}

/* What the header says about the body, once, before the first byte of it is looked at. */
static bool begin(struct hfi_attempt *attempt) {
    bool gzips[CODINGS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < attempt->header_count && count != SIZE_MAX; i++)
        if (strcasecmp(attempt->head.data + attempt->at[i].name, "Content-Encoding") == 0)
            count = read_codings(attempt->head.data + attempt->at[i].value, gzips, count);
    size_t stages = count == SIZE_MAX ? 0 : count;
    attempt->unpack = hfi_alloc(sizeof *attempt->unpack + stages * sizeof *attempt->unpack->stages);
    if (!attempt->unpack)
        return no_memory(attempt);
    attempt->unpack->count = stages;
    for (size_t i = 0; i < stages; i++)
        attempt->unpack->stages[i].is_gzip = gzips[stages - 1 - i]; /* the last one was put on last */
    return count != SIZE_MAX || fault(attempt, CURLE_BAD_CONTENT_ENCODING, "has a coding that was not asked for");
}

static bool feed(struct hfi_attempt *attempt, size_t index, const unsigned char *data, size_t size);

/* Takes off what `data` is wrapped in, and hands on what comes out. */
static bool inflate_all(struct hfi_attempt *attempt, size_t index, const unsigned char *data, size_t size) {
    struct stage *stage = &attempt->unpack->stages[index];
    z_stream *stream = &stage->stream;
    stream->next_in = data;
    stream->avail_in = (uInt)size;
    do {
        if (stage->ended && (!stage->is_gzip || stream->next_in[0] != 0x1f || inflateReset(stream) != Z_OK))
            return fault(attempt, CURLE_BAD_CONTENT_ENCODING, "goes on behind its end");
        stage->ended = false;
        stream->next_out = stage->piece;
        stream->avail_out = PIECE;
        int rc = inflate(stream, Z_NO_FLUSH);
        size_t out = PIECE - stream->avail_out;
        if (out > 0 && !feed(attempt, index + 1, stage->piece, out))
            return false;
        if (rc == Z_MEM_ERROR)
            return no_memory(attempt);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return fault(attempt, CURLE_BAD_CONTENT_ENCODING, "is damaged");
        stage->ended = rc == Z_STREAM_END;
    } while (stream->avail_in > 0 || (!stage->ended && stream->avail_out == 0));
    return true;
}

static bool open_stage(struct hfi_attempt *attempt, struct stage *stage) {
    bool wrapped = (stage->head[0] & 0x0f) == Z_DEFLATED && (stage->head[0] << 8 | stage->head[1]) % 31 == 0;
    int bits = stage->is_gzip ? MAX_WBITS + 16 : wrapped ? MAX_WBITS : -MAX_WBITS; /* some send it bare */
    stage->stream.zalloc = take;
    stage->stream.zfree = give_back;
    stage->ready = inflateInit2(&stage->stream, bits) == Z_OK;
    return stage->ready || no_memory(attempt);
}

static bool feed(struct hfi_attempt *attempt, size_t index, const unsigned char *data, size_t size) {
    struct hfi_unpack *unpack = attempt->unpack;
    if (index == unpack->count)
        return hfi_answer_keep(attempt, (const char *)data, size);
    struct stage *stage = &unpack->stages[index];
    uint64_t limit = (uint64_t)attempt->spec.response_limit;
    stage->taken += size;
    if (stage->taken > limit + limit / 8 + PIECE) { /* nothing that is packed grows like that: it is empty within */
        attempt->reason = HFI_REASON_BODY_TOO_LARGE;
        return false;
    }
    if (!stage->ready) {
        for (; size > 0 && stage->head_length < sizeof stage->head; size--)
            stage->head[stage->head_length++] = *data++;
        if (stage->head_length < sizeof stage->head)
            return true;
        if (!open_stage(attempt, stage) || !inflate_all(attempt, index, stage->head, sizeof stage->head))
            return false;
    }
    return size == 0 || inflate_all(attempt, index, data, size);
}

size_t hfi_unpack_body(struct hfi_attempt *attempt, const char *data, size_t size) {
    if (!attempt->unpack && !begin(attempt))
        return 0;
    return feed(attempt, 0, (const unsigned char *)data, size) ? size : 0;
}

CURLcode hfi_unpack_end(struct hfi_attempt *attempt, CURLcode code) {
    struct hfi_unpack *unpack = attempt->unpack;
    if (!unpack)
        return code;
    for (size_t i = 0; i < unpack->count && code == CURLE_OK && unpack->code == CURLE_OK; i++)
        if (unpack->stages[i].head_length > 0 && !unpack->stages[i].ended)
            fault(attempt, CURLE_PARTIAL_FILE, "ends within its stream");
    if (unpack->code == CURLE_OK)
        return code;
    snprintf(attempt->error, sizeof attempt->error, "the compressed body %s", unpack->why);
    return unpack->code;
}

void hfi_unpack_reset(struct hfi_attempt *attempt) {
    struct hfi_unpack *unpack = attempt->unpack;
    attempt->unpack = NULL;
    for (size_t i = 0; unpack && i < unpack->count; i++)
        if (unpack->stages[i].ready)
            inflateEnd(&unpack->stages[i].stream);
    hfi_free(unpack);
}
