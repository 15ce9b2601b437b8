/* SPDX-License-Identifier: MIT */
/*
 * Every CURLcode by number, those of libcurl 8 included (0-101): class, stage and whether the peer may have the
 * request. Must never include curl.h: the resilience half knows no transport. A caller with proof of what was sent
 * overrules the table; many codes occur on both sides of the send. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdio.h>
#include <strings.h>

#define CODE_MAX 101

/* X(code, NAME, effect, stage, sent). What libcurl calls obsolete has a row too: an older one may still raise it. */
#define CURL_MAP(X)                                                                                                    \
    X(0, OK, OK, RECEIVE, YES)                                                                                         \
    X(1, UNSUPPORTED_PROTOCOL, REFUSED, LOCAL, NO)                                                                     \
    X(2, FAILED_INIT, BUSY, LOCAL, NO)                                                                                 \
    X(3, URL_MALFORMAT, REFUSED, LOCAL, NO)                                                                            \
    X(4, NOT_BUILT_IN, REFUSED, LOCAL, NO)                                                                             \
    X(5, COULDNT_RESOLVE_PROXY, DOWN, RESOLVE, NO)                                                                     \
    X(6, COULDNT_RESOLVE_HOST, DOWN, RESOLVE, NO)                                                                      \
    X(7, COULDNT_CONNECT, DOWN, CONNECT, NO)                                                                           \
    X(8, WEIRD_SERVER_REPLY, DOWN, RECEIVE, MAYBE)                                                                     \
    X(9, REMOTE_ACCESS_DENIED, REFUSED, RECEIVE, YES)                                                                  \
    X(10, FTP_ACCEPT_FAILED, DOWN, WAIT, MAYBE)                                                                        \
    X(11, FTP_WEIRD_PASS_REPLY, REFUSED, WAIT, MAYBE)                                                                  \
    X(12, FTP_ACCEPT_TIMEOUT, DOWN, WAIT, MAYBE)                                                                       \
    X(13, FTP_WEIRD_PASV_REPLY, REFUSED, WAIT, MAYBE)                                                                  \
    X(14, FTP_WEIRD_227_FORMAT, REFUSED, WAIT, MAYBE)                                                                  \
    X(15, FTP_CANT_GET_HOST, REFUSED, WAIT, MAYBE)                                                                     \
    X(16, HTTP2, DOWN, WAIT, MAYBE)                                                                                    \
    X(17, FTP_COULDNT_SET_TYPE, REFUSED, WAIT, MAYBE)                                                                  \
    X(18, PARTIAL_FILE, DOWN, RECEIVE, YES)                                                                            \
    X(19, FTP_COULDNT_RETR_FILE, REFUSED, WAIT, MAYBE)                                                                 \
    X(20, OBSOLETE20, DOWN, WAIT, MAYBE)                                                                               \
    X(21, QUOTE_ERROR, REFUSED, WAIT, MAYBE)                                                                           \
    X(22, HTTP_RETURNED_ERROR, BUSY, RECEIVE, YES)                                                                     \
    X(23, WRITE_ERROR, REFUSED, RECEIVE, YES)                                                                          \
    X(24, OBSOLETE24, DOWN, WAIT, MAYBE)                                                                               \
    X(25, UPLOAD_FAILED, DOWN, SEND, MAYBE)                                                                            \
    X(26, READ_ERROR, BUSY_LATER, SEND, MAYBE)                                                                         \
    X(27, OUT_OF_MEMORY, BUSY, LOCAL, MAYBE)                                                                           \
    X(28, OPERATION_TIMEDOUT, DOWN, WAIT, MAYBE)                                                                       \
    X(29, OBSOLETE29, DOWN, WAIT, MAYBE)                                                                               \
    X(30, FTP_PORT_FAILED, REFUSED, WAIT, MAYBE)                                                                       \
    X(31, FTP_COULDNT_USE_REST, REFUSED, WAIT, MAYBE)                                                                  \
    X(32, OBSOLETE32, DOWN, WAIT, MAYBE)                                                                               \
    X(33, RANGE_ERROR, REFUSED, RECEIVE, YES)                                                                          \
    X(34, HTTP_POST_ERROR, REFUSED, LOCAL, NO)                                                                         \
    X(35, SSL_CONNECT_ERROR, BROKEN, TLS, NO)                                                                          \
    X(36, BAD_DOWNLOAD_RESUME, REFUSED, RECEIVE, YES)                                                                  \
    X(37, FILE_COULDNT_READ_FILE, REFUSED, LOCAL, NO)                                                                  \
    X(38, LDAP_CANNOT_BIND, REFUSED, WAIT, MAYBE)                                                                      \
    X(39, LDAP_SEARCH_FAILED, REFUSED, WAIT, MAYBE)                                                                    \
    X(40, OBSOLETE40, DOWN, WAIT, MAYBE)                                                                               \
    X(41, FUNCTION_NOT_FOUND, REFUSED, LOCAL, NO)                                                                      \
    X(42, ABORTED_BY_CALLBACK, BUSY, LOCAL, MAYBE)                                                                     \
    X(43, BAD_FUNCTION_ARGUMENT, REFUSED, LOCAL, NO)                                                                   \
    X(44, OBSOLETE44, DOWN, WAIT, MAYBE)                                                                               \
    X(45, INTERFACE_FAILED, REFUSED, LOCAL, NO)                                                                        \
    X(46, OBSOLETE46, DOWN, WAIT, MAYBE)                                                                               \
    X(47, TOO_MANY_REDIRECTS, REFUSED, RECEIVE, YES)                                                                   \
    X(48, UNKNOWN_OPTION, REFUSED, LOCAL, NO)                                                                          \
    X(49, SETOPT_OPTION_SYNTAX, REFUSED, LOCAL, NO)                                                                    \
    X(50, OBSOLETE50, DOWN, WAIT, MAYBE)                                                                               \
    X(51, OBSOLETE51, DOWN, WAIT, MAYBE)                                                                               \
    X(52, GOT_NOTHING, DOWN, WAIT, MAYBE)                                                                              \
    X(53, SSL_ENGINE_NOTFOUND, REFUSED, LOCAL, NO)                                                                     \
    X(54, SSL_ENGINE_SETFAILED, REFUSED, LOCAL, NO)                                                                    \
    X(55, SEND_ERROR, DOWN, SEND, MAYBE)                                                                               \
    X(56, RECV_ERROR, DOWN, RECEIVE, MAYBE)                                                                            \
    X(57, OBSOLETE57, DOWN, WAIT, MAYBE)                                                                               \
    X(58, SSL_CERTPROBLEM, REFUSED, LOCAL, NO)                                                                         \
    X(59, SSL_CIPHER, REFUSED, LOCAL, NO)                                                                              \
    X(60, PEER_FAILED_VERIFICATION, BROKEN, TLS, NO)                                                                   \
    X(61, BAD_CONTENT_ENCODING, DOWN_FRESH, RECEIVE, YES)                                                              \
    X(62, OBSOLETE62, DOWN, WAIT, MAYBE)                                                                               \
    X(63, FILESIZE_EXCEEDED, REFUSED, RECEIVE, YES)                                                                    \
    X(64, USE_SSL_FAILED, BROKEN, TLS, NO)                                                                             \
    X(65, SEND_FAIL_REWIND, REFUSED, SEND, MAYBE)                                                                      \
    X(66, SSL_ENGINE_INITFAILED, REFUSED, LOCAL, NO)                                                                   \
    X(67, LOGIN_DENIED, REFUSED, WAIT, NO)                                                                             \
    X(68, TFTP_NOTFOUND, REFUSED, WAIT, MAYBE)                                                                         \
    X(69, TFTP_PERM, REFUSED, WAIT, MAYBE)                                                                             \
    X(70, REMOTE_DISK_FULL, DOWN_LATER, RECEIVE, YES)                                                                  \
    X(71, TFTP_ILLEGAL, REFUSED, WAIT, MAYBE)                                                                          \
    X(72, TFTP_UNKNOWNID, REFUSED, WAIT, MAYBE)                                                                        \
    X(73, REMOTE_FILE_EXISTS, REFUSED, WAIT, MAYBE)                                                                    \
    X(74, TFTP_NOSUCHUSER, REFUSED, WAIT, MAYBE)                                                                       \
    X(75, OBSOLETE75, DOWN, WAIT, MAYBE)                                                                               \
    X(76, OBSOLETE76, DOWN, WAIT, MAYBE)                                                                               \
    X(77, SSL_CACERT_BADFILE, REFUSED, LOCAL, NO)                                                                      \
    X(78, REMOTE_FILE_NOT_FOUND, REFUSED, RECEIVE, YES)                                                                \
    X(79, SSH, REFUSED, WAIT, MAYBE)                                                                                   \
    X(80, SSL_SHUTDOWN_FAILED, BUSY, LOCAL, MAYBE)                                                                     \
    X(81, AGAIN, BUSY, LOCAL, MAYBE)                                                                                   \
    X(82, SSL_CRL_BADFILE, REFUSED, LOCAL, NO)                                                                         \
    X(83, SSL_ISSUER_ERROR, BROKEN, TLS, NO)                                                                           \
    X(84, FTP_PRET_FAILED, REFUSED, WAIT, MAYBE)                                                                       \
    X(85, RTSP_CSEQ_ERROR, REFUSED, WAIT, MAYBE)                                                                       \
    X(86, RTSP_SESSION_ERROR, REFUSED, WAIT, MAYBE)                                                                    \
    X(87, FTP_BAD_FILE_LIST, REFUSED, WAIT, MAYBE)                                                                     \
    X(88, CHUNK_FAILED, REFUSED, WAIT, MAYBE)                                                                          \
    X(89, NO_CONNECTION_AVAILABLE, BUSY, LOCAL, NO)                                                                    \
    X(90, SSL_PINNEDPUBKEYNOTMATCH, BROKEN, TLS, NO)                                                                   \
    X(91, SSL_INVALIDCERTSTATUS, DOWN, TLS, NO)                                                                        \
    X(92, HTTP2_STREAM, DOWN, RECEIVE, MAYBE)                                                                          \
    X(93, RECURSIVE_API_CALL, REFUSED, LOCAL, NO)                                                                      \
    X(94, AUTH_ERROR, REFUSED, WAIT, MAYBE)                                                                            \
    X(95, HTTP3, DOWN, WAIT, MAYBE)                                                                                    \
    X(96, QUIC_CONNECT_ERROR, DOWN, CONNECT, NO)                                                                       \
    X(97, PROXY, DOWN, CONNECT, NO)                                                                                    \
    X(98, SSL_CLIENTCERT, REFUSED, TLS, NO)                                                                            \
    X(99, UNRECOVERABLE_POLL, BUSY, LOCAL, MAYBE)                                                                      \
    X(100, TOO_LARGE, REFUSED, LOCAL, MAYBE)                                                                           \
    X(101, ECH_REQUIRED, BROKEN, TLS, NO)

static const struct row {
    const char *name;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
} table[CODE_MAX + 1] = {
#define ROW(code, name, effect, stage, sent) [code] = {#name, HFI_EFFECT_##effect, HF_STAGE_##stage, HF_SENT_##sent},
    CURL_MAP(ROW)
#undef ROW
};

void hf_classify_curl(int code, enum hf_sent sent, struct hf_outcome *outcome) {
    char type[HFI_ERROR_TYPE_MAX] = "curl.";
    char rule[24];
    if (code < 0 || code > CODE_MAX || table[code].name == NULL) {
        hfi_effect_guess(outcome, code, "curl.unknown", "curl.unknown");
        outcome->sent = sent;
        hfi_outcome_message(outcome, "libcurl ended with %d, which this version does not know", code);
        return;
    }
    const struct row *row = &table[code];
    size_t at = sizeof "curl." - 1;
    for (const char *c = row->name; *c != '\0' && at + 1 < sizeof type; c++)
        type[at++] = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    type[at] = '\0';
    snprintf(rule, sizeof rule, "curl.%d", code);
    hfi_effect_apply(outcome, row->effect, row->stage, sent != HF_SENT_MAYBE ? sent : row->sent, code, type, rule);
    if (code != 0)
        hfi_outcome_message(outcome, "libcurl ended with %d (%s)", code, row->name);
}

static void show(size_t index, struct hf_rule_row *row) {
    char rule[24];
    if (index > CODE_MAX) {
        hfi_row_rest(row, "curl.unknown");
        return;
    }
    snprintf(rule, sizeof rule, "curl.%zu", index);
    const struct row *from = &table[index];
    hfi_row_fill(row, from->effect, from->stage, from->sent, rule, "", "%zu CURLE_%s", index, from->name);
}

const struct hfi_table hfi_table_curl = {
    "curl",
    "How a transfer of libcurl ended. `sent` is what the table believes; proof from the transfer overrules it.",
    "libcurl-errors(3)",
    false,
    CODE_MAX + 2,
    show};

int hf_curl_number(const char *name) {
    if (name == NULL)
        return -1;
    int number = hfi_digits(name);
    if (number >= 0)
        return number;
    if (strncasecmp(name, "CURLE_", 6) == 0)
        name += 6;
    for (int code = 0; code <= CODE_MAX; code++)
        if (table[code].name != NULL && strcasecmp(name, table[code].name) == 0)
            return code;
    return -1;
}
