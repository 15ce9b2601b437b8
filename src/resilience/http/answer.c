/* SPDX-License-Identifier: MIT */
/*
 * What came back: collects the answer inside libcurl's callbacks and turns the end of a transfer into facts. Must
 * never let a cut header pass for an answer, hold more than the body limit, or believe libcurl's code about what was
 * sent: the callback before each send is the proof. On the scheduler's thread.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "resilience/address.h"
#include "resilience/http/engine.h"
#include "resilience/http/unpack.h"

#define BODY_KEPT 16384   /* bytes of buffer that stay with a pooled handle */
#define LINE_LIMIT 102400 /* libcurl's own, for one header line */

static const char *const reason_types[] = {
#define HFI_REASON_TYPE(name, type, message) type,
    HFI_REASON_MAP(HFI_REASON_TYPE)
#undef HFI_REASON_TYPE
};
static const char *const reason_messages[] = {
#define HFI_REASON_MESSAGE(name, type, message) message,
    HFI_REASON_MAP(HFI_REASON_MESSAGE)
#undef HFI_REASON_MESSAGE
};

void hfi_answer_reset(struct hfi_attempt *attempt) {
    attempt->host = NULL;
    attempt->leads = false;
    attempt->looked_up = false;
    attempt->lookup = -1;
    attempt->wire = -1;
    attempt->socket = -1;
    attempt->sends = 0;
    attempt->opened = 0;
    attempt->reason = HFI_REASON_NONE;
    attempt->code = CURLE_OK;
    attempt->failed_errno = 0;
    attempt->status = 0;
    attempt->final = false;
    attempt->head_bytes = 0;
    attempt->header_count = 0;
    attempt->head.length = 0;
    attempt->head.failed = false;
    attempt->body.length = 0;
    attempt->body.failed = false;
    attempt->error[0] = '\0';
    if (attempt->unpack)
        hfi_unpack_reset(attempt);
    if (attempt->body.room > BODY_KEPT)
        hfi_bytes_free(&attempt->body);
    else if (attempt->body.room > 0)
        attempt->body.data[0] = '\0';
}

static bool grow_headers(struct hfi_attempt *attempt) {
    if (attempt->header_count < attempt->header_room)
        return true;
    size_t room = attempt->header_room ? attempt->header_room * 2 : 16;
    struct hfi_header_at *at = hfi_realloc(attempt->at, room * sizeof *at);
    if (at)
        attempt->at = at;
    struct hf_header *headers = hfi_realloc(attempt->headers, room * sizeof *headers);
    if (headers)
        attempt->headers = headers;
    if (!at || !headers)
        return false;
    attempt->header_room = room;
    return true;
}

/* One `Name: value` line; a line that starts with a space goes on with the last value (obs-fold, RFC 9112 5.2). */
static bool add_header(struct hfi_attempt *attempt, const char *line, size_t length) {
    struct hfi_bytes *head = &attempt->head;
    const char *colon = memchr(line, ':', length), *end = line + length;
    bool folded = line[0] == ' ' || line[0] == '\t';
    const char *value = folded ? line : colon ? colon + 1 : NULL;
    if (!value || (folded && attempt->header_count == 0))
        return true;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    if (!folded) {
        if (!grow_headers(attempt))
            return false;
        struct hfi_header_at *at = &attempt->at[attempt->header_count++];
        at->name = head->length;
        at->value = head->length + (size_t)(value - line);
        hfi_bytes_add(head, line, length);
        if (!head->failed)
            head->data[at->name + (size_t)(colon - line)] = '\0';
    } else {
        head->length--; /* the NUL behind the last value */
        hfi_bytes_add(head, " ", 1);
        hfi_bytes_add(head, value, (size_t)(end - value));
    }
    head->length += !head->failed; /* the NUL that stands there stays */
    return !head->failed;
}

/* `HTTP/1.1 200 OK`: three digits behind the first space. */
static int status_of(const char *line, size_t length) {
    const char *space = memchr(line, ' ', length);
    if (!space || line + length - space < 4)
        return 0;
    int status = 0;
    for (int i = 1; i <= 3; i++) {
        if (!isdigit((unsigned char)space[i]))
            return 0;
        status = status * 10 + (space[i] - '0');
    }
    return status;
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t hfi_answer_header(char *data, size_t one, size_t length, void *user) {
    struct hfi_attempt *attempt = user;
    size_t taken = one * length, end = taken;
    while (end > 0 && is_blank(data[end - 1]))
        end--;
    attempt->head_bytes += taken;
    if (attempt->spec.header_limit > 0 && attempt->head_bytes > (uint64_t)attempt->spec.header_limit) {
        attempt->reason = HFI_REASON_HEADERS_TOO_LARGE;
        return 0;
    }
    if (attempt->final)
        return taken; /* a trailer: nothing of it decides anything */
    if (end >= 9 && memcmp(data, "HTTP/", 5) == 0) {
        attempt->status = status_of(data, end);
        attempt->header_count = 0;
        attempt->head.length = 0;
        return taken;
    }
    if (end == 0) {
        attempt->final = attempt->status >= 200;
        return taken;
    }
    if (!add_header(attempt, data, end)) {
        attempt->header_count = 0; /* without their texts they are none */
        attempt->reason = HFI_REASON_MEMORY;
        return 0;
    }
    return taken;
}

bool hfi_answer_keep(struct hfi_attempt *attempt, const char *data, size_t size) {
    if (size > (uint64_t)attempt->spec.response_limit - attempt->body.length) {
        attempt->reason = HFI_REASON_BODY_TOO_LARGE;
        return false;
    }
    hfi_bytes_add(&attempt->body, data, size);
    if (attempt->body.failed)
        attempt->reason = HFI_REASON_MEMORY;
    return !attempt->body.failed;
}

size_t hfi_answer_body(char *data, size_t one, size_t length, void *user) {
    struct hfi_attempt *attempt = user;
    size_t size = one * length;
    if (attempt->spec.compressed)
        return hfi_unpack_body(attempt, data, size);
    return hfi_answer_keep(attempt, data, size) ? size : 0;
}

/*
 * Right before the request goes out, every time. libcurl sends again by itself, POST included, when a reused
 * connection died without an answer (L1): one attempt must be one request.
 */
int hfi_answer_send(void *user, char *remote, char *local, int remote_port, int local_port) {
    struct hfi_attempt *attempt = user;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (attempt->sends > 0 && !attempt->spec.repeatable) {
        attempt->reason = HFI_REASON_RESEND_STOPPED;
        return CURL_PREREQFUNC_ABORT;
    }
    if (attempt->spec.deny_private && hfi_address_private_text(remote)) { /* a connection of who may go there */
        attempt->reason = HFI_REASON_PRIVATE_NETWORK;
        return CURL_PREREQFUNC_ABORT;
    }
    attempt->sends++;
    hfi_hosts_resolved(attempt);
    return CURL_PREREQFUNC_OK;
}

static bool was_reused(struct hfi_attempt *attempt) {
    long connects = 0;
    curl_easy_getinfo(attempt->easy, CURLINFO_NUM_CONNECTS, &connects);
    return attempt->sends > 0 && connects == 0;
}

/* Proof only: nothing left, or a whole final header came. An old connection's idle 408 proves nothing. */
enum hf_sent hfi_answer_sent(struct hfi_attempt *attempt) {
    if (attempt->hops > 0) /* who sent us on had it */
        return HF_SENT_YES;
    if (attempt->sends == 0)
        return HF_SENT_NO;
    return attempt->final && !(attempt->status == 408 && was_reused(attempt)) ? HF_SENT_YES : HF_SENT_MAYBE;
}

static bool is_tls_code(CURLcode code) {
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return true;
    default:
        return false;
    }
}

static enum hf_stage stage_of_sent(struct hfi_attempt *attempt) {
    curl_off_t uploaded = 0;
    long request = 0;
    if (attempt->status > 0)
        return HF_STAGE_RECEIVE;
    if (attempt->reason == HFI_REASON_RESEND_STOPPED) /* libcurl counts from zero by then */
        return HF_STAGE_WAIT;
    curl_easy_getinfo(attempt->easy, CURLINFO_REQUEST_SIZE, &request);
    curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    return request > 0 && (uint64_t)uploaded >= attempt->spec.body_length ? HF_STAGE_WAIT : HF_STAGE_SEND;
}

/* With TLS 1.3 a peer refuses our certificate after our end of the handshake: the request was on its way already. */
static bool is_late_refusal(const struct hfi_attempt *attempt, CURLcode code) {
    return code == CURLE_RECV_ERROR && attempt->status == 0 && strstr(attempt->error, "alert") != NULL;
}

/* What a proxy said to CONNECT, 0 nothing. */
static long connect_answer(const struct hfi_attempt *attempt) {
    long status = 0;
    if (hfi_reach_of(attempt)->proxy)
        curl_easy_getinfo(attempt->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return status;
}

/* Is there a way to the peer itself? */
static bool has_tunnel(const struct hfi_attempt *attempt) {
    return !hfi_reach_of(attempt)->proxy || connect_answer(attempt) / 100 == 2;
}

enum hf_stage hfi_answer_stage(struct hfi_attempt *attempt, CURLcode code) {
    if (is_late_refusal(attempt, code))
        return HF_STAGE_TLS;
    if (attempt->sends > 0)
        return stage_of_sent(attempt);
    if (attempt->reason >= HFI_REASON_DESCRIPTORS)
        return HF_STAGE_LOCAL;
    if (is_tls_code(code))
        return HF_STAGE_TLS;
    if (attempt->socket < 0)
        return attempt->host && attempt->failed_errno == 0 ? HF_STAGE_RESOLVE : HF_STAGE_CONNECT;
    bool tls =
        strncasecmp(attempt->spec.url, "https:", 6) == 0 && hfi_sockets_connected(attempt->engine, attempt->socket);
    return tls && has_tunnel(attempt) ? HF_STAGE_TLS : HF_STAGE_CONNECT;
}

static int64_t phase(CURL *easy, CURLINFO which, int64_t before) {
    curl_off_t us = 0;
    curl_easy_getinfo(easy, which, &us);
    return us > 0 ? before + us : -1;
}

struct hf_mono hfi_answer_phases(struct hfi_attempt *attempt, struct hfi_phases *phases) {
    int64_t before = attempt->added.us - attempt->started.us; /* waiting for another's lookup */
    bool running = attempt->place == HFI_PLACE_RUNNING;
    bool connected = running && !was_reused(attempt);
    phases->resolve_us = connected ? phase(attempt->easy, CURLINFO_NAMELOOKUP_TIME_T, before) : -1;
    phases->connect_us = connected ? phase(attempt->easy, CURLINFO_CONNECT_TIME_T, before) : -1;
    phases->tls_us = connected ? phase(attempt->easy, CURLINFO_APPCONNECT_TIME_T, before) : -1;
    phases->first_byte_us =
        running && attempt->status > 0 ? phase(attempt->easy, CURLINFO_STARTTRANSFER_TIME_T, before) : -1;
    struct hf_mono now = hfi_now(attempt->engine->scheduler);
    phases->total_us = now.us - attempt->started.us; /* libcurl's is 0 at times */
    return now;
}

/* libcurl calls a header line beyond its limit of 100 KiB out of memory. Is there any? */
static bool is_long_line(const struct hfi_attempt *attempt, CURLcode code) {
    if (code != CURLE_OUT_OF_MEMORY || attempt->reason != HFI_REASON_NONE || attempt->sends == 0 || attempt->final)
        return false;
    void *probe = hfi_alloc(LINE_LIMIT);
    hfi_free(probe);
    return probe != NULL;
}

#define BEYOND (sizeof "9223372036854775807" - 1) /* whatever has fewer digits is a number */

/* A Content-Length beyond any number: libcurl ignores it and takes whatever comes for the whole. */
static bool is_endless(const struct hfi_attempt *attempt) {
    if (strcmp(attempt->spec.method, "HEAD") == 0 || attempt->status == 204 || attempt->status == 304)
        return false;
    for (size_t i = 0; i < attempt->header_count; i++) {
        const char *name = attempt->head.data + attempt->at[i].name, *value = attempt->head.data + attempt->at[i].value;
        if ((name[0] == 'C' || name[0] == 'c') && strlen(value) >= BEYOND && strcasecmp(name, "Content-Length") == 0) {
            errno = 0;
            strtoll(value, NULL, 10);
            if (errno == ERANGE)
                return true;
        }
    }
    return false;
}

/* libcurl's code, where it is none or the wrong one for what came. */
static CURLcode true_code(struct hfi_attempt *attempt, CURLcode code) {
    if (is_long_line(attempt, code)) { /* as libcurl itself says of all lines together */
        snprintf(attempt->error, sizeof attempt->error, "Too large response headers: a line > %d", LINE_LIMIT);
        return CURLE_RECV_ERROR;
    }
    if (code == CURLE_OK && !attempt->final && attempt->status == 101) {
        snprintf(attempt->error, sizeof attempt->error, "the peer switched to a protocol nobody asked for");
        return CURLE_WEIRD_SERVER_REPLY;
    }
    if (code == CURLE_OK && attempt->final && is_endless(attempt)) {
        snprintf(attempt->error, sizeof attempt->error, "the body is shorter than its Content-Length");
        return CURLE_PARTIAL_FILE;
    }
    return attempt->unpack ? hfi_unpack_end(attempt, code) : code;
}

/* The reason behind libcurl's code, where one was not noted on the way. */
static void find_reason(struct hfi_attempt *attempt, CURLcode code, long number) {
    if (code == CURLE_OK && !attempt->final)
        attempt->reason = HFI_REASON_TRUNCATED_HEADERS;
    else if (code == CURLE_OUT_OF_MEMORY)
        attempt->reason = HFI_REASON_MEMORY;
    else if (code == CURLE_COULDNT_CONNECT && number == EADDRNOTAVAIL)
        attempt->reason = HFI_REASON_PORTS;
    else if (attempt->sends == 0 && connect_answer(attempt) >= 300) {
        long status = connect_answer(attempt);
        attempt->reason = status == 429 || status >= 500 ? HFI_REASON_PROXY_FAILED : HFI_REASON_PROXY_REFUSED;
        snprintf(attempt->error, sizeof attempt->error, "the proxy answered %ld to CONNECT", status);
    }
}

const char *hfi_answer_get(const struct hfi_attempt *attempt, const char *name) {
    for (size_t i = 0; i < attempt->header_count; i++) {
        const char *one = attempt->head.data + attempt->at[i].name;
        if (((one[0] ^ name[0]) & ~0x20) == 0 && strcasecmp(one, name) == 0)
            return attempt->head.data + attempt->at[i].value;
    }
    return NULL;
}

void hfi_answer_facts(struct hfi_attempt *attempt, CURLcode code, struct hfi_attempt_facts *facts) {
    long number = 0;
    curl_easy_getinfo(attempt->easy, CURLINFO_OS_ERRNO, &number);
    code = true_code(attempt, code);
    if (code == CURLE_OK || attempt->reason == HFI_REASON_NONE)
        find_reason(attempt, code, number);
    memset(facts, 0, sizeof *facts);
    facts->native = (int)code;
    facts->native_errno = attempt->failed_errno ? attempt->failed_errno : (int)number;
    facts->status = attempt->status >= 200 ? attempt->status : 0;
    facts->sent = hfi_answer_sent(attempt);
    facts->stage = hfi_answer_stage(attempt, code);
    facts->error_type = reason_types[attempt->reason];
    facts->message = reason_messages[attempt->reason];
    if (!facts->message)
        facts->message = code == CURLE_OK    ? (attempt->unfollowed ? attempt->unfollowed : "")
                         : attempt->error[0] ? attempt->error
                                             : curl_easy_strerror(code);
    facts->reused = was_reused(attempt);
    facts->hops = attempt->hops;
    facts->now = hfi_answer_phases(attempt, &facts->phases);
    for (size_t i = 0; i < attempt->header_count; i++) {
        attempt->headers[i].name = attempt->head.data + attempt->at[i].name;
        attempt->headers[i].value = attempt->head.data + attempt->at[i].value;
    }
    facts->retry_after = hfi_answer_get(attempt, "Retry-After");
    facts->headers = attempt->headers;
    facts->header_texts = attempt->head.data;
    facts->header_texts_length = attempt->head.length;
    facts->header_count = attempt->header_count;
    facts->body = attempt->body.data;
    facts->body_length = attempt->body.length;
}
