/* SPDX-License-Identifier: MIT */
/* HTTP statuses, CURLcodes and attempts' facts: S0.2, S0.3, S0.4, B9, B19, B33, A6, L3, L8. */
#include "support/support.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

#include "resilience/classify.h"

static const int64_t now_us = INT64_C(1790000000) * 1000000;

static void s0_4_http_map(void **state) {
    (void)state;
    struct hf_outcome o;
    for (int status = 0; status < 1100; status++) { /* 0, 99, 600 and more: S0.3 */
        char type[24];
        hf_classify_http(status, NULL, now_us, &o);
        snprintf(type, sizeof type, "http.%d", status);
        bool ok = status >= 200 && status <= 299;
        bool transient = status < 200 || status > 599 || status == 408 || status == 421 || status == 425 ||
                         status == 429 ||
                         (status >= 500 && status != 501 && status != 505 && status != 511);
        assert_int_equal(o.klass, ok ? HF_CLASS_OK : transient ? HF_CLASS_TRANSIENT : HF_CLASS_PERMANENT);
        assert_int_equal(o.kind, ok ? HF_OUTCOME_SUCCESS : HF_OUTCOME_FAILURE);
        if (ok)
            assert_int_equal(o.verdict, HF_VERDICT_SUCCESS);
        else if (status >= 300 && status <= 499)
            assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL); /* B9: no 4xx ever feeds the breaker */
        else if (transient)
            assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
        assert_int_equal(o.retry, ok || !transient ? HF_RETRY_NONE : status == 421 ? HF_RETRY_FRESH : HF_RETRY_NOW);
        assert_string_equal(o.error_type, ok ? "" : type);
        assert_true(o.rule[0] != '\0');
        assert_int_equal(o.native, status);
    }
}

/* What proves the peer alive while half-open (2.5): complete neutral answers, but not throttling or timeouts. */
static void b9_evidence_of_life(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *retry_after;
        bool life;
    } rows[] = {{400, NULL, true},  {404, "5", true},   {302, NULL, true},  {421, NULL, true},  {501, NULL, true},
                {408, NULL, false}, {425, NULL, false}, {429, NULL, false}, {429, "1", false},  {503, "1", false},
                {503, NULL, false}, {500, NULL, false}, {200, NULL, false}, {999, NULL, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_outcome o;
        hf_classify_http(rows[i].status, rows[i].retry_after, now_us, &o);
        assert_int_equal(o.life, rows[i].life);
        if (rows[i].life)
            assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    }
}

static void b33_retry_after_makes_neutral_and_gates(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(503, "2", now_us, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    assert_int_equal(o.retry, HF_RETRY_NOW);
    assert_int_equal(o.retry_after_ms, 2000);
    assert_true(o.gate_downstream && !o.gate_limit);
    hf_classify_http(503, "soon", now_us, &o); /* junk is no wait */
    assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
    assert_int_equal(o.retry_after_ms, -1);
    assert_false(o.gate_downstream || o.gate_limit);
    hf_classify_http(429, "3", now_us, &o);
    assert_true(o.gate_limit && !o.gate_downstream);
    hf_classify_http(200, "3", now_us, &o);
    assert_int_equal(o.retry_after_ms, -1);

    struct hfi_attempt_facts facts = {.status = 429, .sent = HF_SENT_YES, .stage = HF_STAGE_RECEIVE};
    hfi_classify_attempt(&facts, (struct hf_wall){now_us}, false, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hfi_classify_attempt(&facts, (struct hf_wall){now_us}, true, &o);
    assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
}

/* A3: whoever has to wait hears all of it; a job cuts it (test_failure.c). */
static void a3_retry_after_is_handed_on_whole(void **state) {
    (void)state;
    struct hf_outcome o;
    struct hfi_attempt_facts facts = {.status = 503, .retry_after = "410400", .sent = HF_SENT_YES};
    hfi_classify_attempt(&facts, (struct hf_wall){now_us}, false, &o);
    assert_int_equal(o.retry_after_ms, 410400000);
}

#define ROW(code) {code, #code}
static const struct {
    int code;
    const char *name;
} codes[] = {
    ROW(CURLE_OK), ROW(CURLE_UNSUPPORTED_PROTOCOL), ROW(CURLE_FAILED_INIT), ROW(CURLE_URL_MALFORMAT),
    ROW(CURLE_NOT_BUILT_IN), ROW(CURLE_COULDNT_RESOLVE_PROXY), ROW(CURLE_COULDNT_RESOLVE_HOST),
    ROW(CURLE_COULDNT_CONNECT), ROW(CURLE_WEIRD_SERVER_REPLY), ROW(CURLE_REMOTE_ACCESS_DENIED),
    ROW(CURLE_FTP_ACCEPT_FAILED), ROW(CURLE_FTP_WEIRD_PASS_REPLY), ROW(CURLE_FTP_ACCEPT_TIMEOUT),
    ROW(CURLE_FTP_WEIRD_PASV_REPLY), ROW(CURLE_FTP_WEIRD_227_FORMAT), ROW(CURLE_FTP_CANT_GET_HOST), ROW(CURLE_HTTP2),
    ROW(CURLE_FTP_COULDNT_SET_TYPE), ROW(CURLE_PARTIAL_FILE), ROW(CURLE_FTP_COULDNT_RETR_FILE), ROW(CURLE_QUOTE_ERROR),
    ROW(CURLE_HTTP_RETURNED_ERROR), ROW(CURLE_WRITE_ERROR), ROW(CURLE_UPLOAD_FAILED), ROW(CURLE_READ_ERROR),
    ROW(CURLE_OUT_OF_MEMORY), ROW(CURLE_OPERATION_TIMEDOUT), ROW(CURLE_FTP_PORT_FAILED), ROW(CURLE_FTP_COULDNT_USE_REST),
    ROW(CURLE_RANGE_ERROR), ROW(CURLE_HTTP_POST_ERROR), ROW(CURLE_SSL_CONNECT_ERROR), ROW(CURLE_BAD_DOWNLOAD_RESUME),
    ROW(CURLE_FILE_COULDNT_READ_FILE), ROW(CURLE_LDAP_CANNOT_BIND), ROW(CURLE_LDAP_SEARCH_FAILED),
    ROW(CURLE_FUNCTION_NOT_FOUND), ROW(CURLE_ABORTED_BY_CALLBACK), ROW(CURLE_BAD_FUNCTION_ARGUMENT),
    ROW(CURLE_INTERFACE_FAILED), ROW(CURLE_TOO_MANY_REDIRECTS), ROW(CURLE_UNKNOWN_OPTION),
    ROW(CURLE_SETOPT_OPTION_SYNTAX), ROW(CURLE_GOT_NOTHING), ROW(CURLE_SSL_ENGINE_NOTFOUND),
    ROW(CURLE_SSL_ENGINE_SETFAILED), ROW(CURLE_SEND_ERROR), ROW(CURLE_RECV_ERROR), ROW(CURLE_SSL_CERTPROBLEM),
    ROW(CURLE_SSL_CIPHER), ROW(CURLE_PEER_FAILED_VERIFICATION), ROW(CURLE_BAD_CONTENT_ENCODING),
    ROW(CURLE_FILESIZE_EXCEEDED), ROW(CURLE_USE_SSL_FAILED), ROW(CURLE_SEND_FAIL_REWIND),
    ROW(CURLE_SSL_ENGINE_INITFAILED), ROW(CURLE_LOGIN_DENIED), ROW(CURLE_TFTP_NOTFOUND), ROW(CURLE_TFTP_PERM),
    ROW(CURLE_REMOTE_DISK_FULL), ROW(CURLE_TFTP_ILLEGAL), ROW(CURLE_TFTP_UNKNOWNID), ROW(CURLE_REMOTE_FILE_EXISTS),
    ROW(CURLE_TFTP_NOSUCHUSER), ROW(CURLE_SSL_CACERT_BADFILE), ROW(CURLE_REMOTE_FILE_NOT_FOUND), ROW(CURLE_SSH),
    ROW(CURLE_SSL_SHUTDOWN_FAILED), ROW(CURLE_AGAIN), ROW(CURLE_SSL_CRL_BADFILE), ROW(CURLE_SSL_ISSUER_ERROR),
    ROW(CURLE_FTP_PRET_FAILED), ROW(CURLE_RTSP_CSEQ_ERROR), ROW(CURLE_RTSP_SESSION_ERROR),
    ROW(CURLE_FTP_BAD_FILE_LIST), ROW(CURLE_CHUNK_FAILED), ROW(CURLE_NO_CONNECTION_AVAILABLE),
    ROW(CURLE_SSL_PINNEDPUBKEYNOTMATCH), ROW(CURLE_SSL_INVALIDCERTSTATUS), ROW(CURLE_HTTP2_STREAM),
    ROW(CURLE_RECURSIVE_API_CALL), ROW(CURLE_AUTH_ERROR), ROW(CURLE_HTTP3), ROW(CURLE_QUIC_CONNECT_ERROR),
    ROW(CURLE_PROXY), ROW(CURLE_SSL_CLIENTCERT), ROW(CURLE_UNRECOVERABLE_POLL)};
#undef ROW

/* Our numbers and names are libcurl's own; what the table lacks below 100 is exactly what libcurl calls obsolete. */
static void every_curlcode_is_in_the_table(void **state) {
    (void)state;
    bool known[CURL_LAST] = {false};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct hf_outcome o;
        char rule[24];
        known[codes[i].code] = true;
        assert_int_equal(hf_curl_number(codes[i].name), codes[i].code);
        hf_classify_curl(codes[i].code, HF_SENT_MAYBE, &o);
        snprintf(rule, sizeof rule, "curl.%d", codes[i].code);
        assert_string_equal(o.rule, rule);
        if (codes[i].code != 0) {
            assert_int_equal(strncmp(o.error_type, "curl.", 5), 0);
            for (const char *c = o.error_type; *c; c++)
                assert_false(*c >= 'A' && *c <= 'Z');
            assert_int_equal(strlen(o.error_type) - 5, strlen(codes[i].name) - 6);
        }
    }
    static const int obsolete[] = {20, 24, 29, 32, 40, 44, 46, 50, 51, 57, 62, 75, 76};
    size_t missing = 0;
    for (int code = 0; code < CURL_LAST; code++)
        if (!known[code]) {
            struct hf_outcome o;
            assert_int_equal(code, obsolete[missing++]);
            hf_classify_curl(code, HF_SENT_MAYBE, &o);
            assert_int_equal(strncmp(o.error_type, "curl.obsolete", 13), 0); /* an older libcurl may raise it */
            assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
        }
    assert_int_equal(missing, sizeof obsolete / sizeof *obsolete);
    struct hf_outcome no_room; /* libcurl's word for a lack of resources too [S0.3] */
    hf_classify_curl(CURLE_FAILED_INIT, HF_SENT_MAYBE, &no_room);
    assert_int_equal(no_room.klass, HF_CLASS_TRANSIENT);
    assert_int_equal(no_room.verdict, HF_VERDICT_NEUTRAL);
    assert_int_equal(no_room.sent, HF_SENT_NO);
    assert_true(CURL_LAST >= 100);
    /* What newer ones raise, by number. */
    assert_int_equal(hf_curl_number("CURLE_TOO_LARGE"), 100);
    assert_int_equal(hf_curl_number("CURLE_ECH_REQUIRED"), 101);
}

static void curl_verdicts(void **state) {
    (void)state;
    static const struct {
        int code;
        enum hf_class klass;
        enum hf_verdict verdict;
        enum hf_sent sent;
        enum hf_stage stage;
        const char *type;
    } rows[] = {
        {6, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, HF_STAGE_RESOLVE, "curl.couldnt_resolve_host"},
        {7, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, HF_STAGE_CONNECT, "curl.couldnt_connect"},
        {28, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, HF_STAGE_WAIT, "curl.operation_timedout"},
        {52, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, HF_STAGE_WAIT, "curl.got_nothing"},
        {18, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, HF_STAGE_RECEIVE, "curl.partial_file"},
        {3, HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_NO, HF_STAGE_LOCAL, "curl.url_malformat"},
        {23, HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, HF_STAGE_RECEIVE, "curl.write_error"},      /* L8 */
        {65, HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, HF_STAGE_SEND, "curl.send_fail_rewind"}, /* L8 */
        {27, HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, HF_STAGE_LOCAL, "curl.out_of_memory"},
        {60, HF_CLASS_PERMANENT, HF_VERDICT_FAILURE, HF_SENT_NO, HF_STAGE_TLS, "curl.peer_failed_verification"},
        {20, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, HF_STAGE_WAIT, "curl.obsolete20"}, /* S0.3 */
        {102, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, HF_STAGE_WAIT, "curl.unknown"},
        {-1, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, HF_STAGE_WAIT, "curl.unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_outcome o;
        hf_classify_curl(rows[i].code, HF_SENT_MAYBE, &o);
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_int_equal(o.sent, rows[i].sent);
        assert_int_equal(o.stage, rows[i].stage);
        assert_string_equal(o.error_type, rows[i].type);
        hf_classify_curl(rows[i].code, HF_SENT_NO, &o);
        assert_int_equal(o.sent, HF_SENT_NO);
        hf_classify_curl(rows[i].code, HF_SENT_YES, &o);
        assert_int_equal(o.sent, HF_SENT_YES);
    }
    struct hf_outcome o;
    hf_classify_curl(0, HF_SENT_MAYBE, &o);
    assert_int_equal(o.kind, HF_OUTCOME_SUCCESS);
}

static void curl_names(void **state) {
    (void)state;
    assert_int_equal(hf_curl_number("28"), 28);
    assert_int_equal(hf_curl_number("CURLE_OPERATION_TIMEDOUT"), 28);
    assert_int_equal(hf_curl_number("operation_timedout"), 28);
    assert_int_equal(hf_curl_number("CURLE_NOPE"), -1);
    assert_int_equal(hf_curl_number(""), -1);
    assert_int_equal(hf_curl_number(NULL), -1);
    assert_int_equal(hf_curl_number("99999999999"), -1);
}

static void facts_decide_where_the_code_cannot(void **state) {
    (void)state;
    static const struct {
        struct hfi_attempt_facts facts;
        const char *rule;
        enum hf_class klass;
        enum hf_verdict verdict;
        enum hf_sent sent;
    } rows[] = {
        {{.native = 7, .native_errno = ECONNREFUSED, .sent = HF_SENT_NO, .stage = HF_STAGE_CONNECT},
         "curl.7", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO},
        {{.native = 7, .native_errno = EMFILE, .sent = HF_SENT_NO, .stage = HF_STAGE_CONNECT},
         "curl.7.local", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_NO}, /* B19 */
        {{.native = 28, .sent = HF_SENT_NO, .stage = HF_STAGE_LOCAL},
         "curl.28.queue", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_NO}, /* L3 */
        {{.native = 28, .sent = HF_SENT_MAYBE, .stage = HF_STAGE_WAIT},
         "curl.28", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE},
        {{.native = 35, .native_errno = ECONNRESET, .sent = HF_SENT_NO, .stage = HF_STAGE_TLS},
         "curl.35.cut", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO},
        {{.native = 35, .message = "error:0A000126:SSL routines: SSL_ERROR_SYSCALL", .sent = HF_SENT_NO},
         "curl.35.cut", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO},
        {{.native = 35, .message = "wrong version number", .sent = HF_SENT_NO},
         "curl.35", HF_CLASS_PERMANENT, HF_VERDICT_FAILURE, HF_SENT_NO},
        {{.native = 1, .sent = HF_SENT_NO}, "curl.1", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_NO},
        {{.native = 1, .sent = HF_SENT_MAYBE}, "curl.1.reply", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE},
        {{.native = 45, .native_errno = EADDRINUSE, .sent = HF_SENT_NO},
         "curl.45.local", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_NO},
        {{.native = 56, .sent = HF_SENT_MAYBE}, "curl.56", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE},
        {{.native = 56, .message = "tlsv13 alert certificate required", .sent = HF_SENT_MAYBE},
         "curl.56.alert", HF_CLASS_PERMANENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE},
        {{.native = 56, .message = "Too large response headers: 307232 > 307200", .sent = HF_SENT_MAYBE},
         "curl.56.headers", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE},
        {{.native = 56, .message = "CONNECT tunnel failed, response 502", .sent = HF_SENT_MAYBE},
         "curl.56", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO},
        {{.native = 7, .sent = HF_SENT_MAYBE}, "curl.7", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE},
        {{.native = 22, .status = 404, .sent = HF_SENT_YES},
         "http.4xx", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES},
        {{.status = 200, .sent = HF_SENT_YES}, "http.2xx", HF_CLASS_OK, HF_VERDICT_SUCCESS, HF_SENT_YES},
        {{.status = 408, .sent = HF_SENT_YES}, "http.408", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE},
        {{.status = 0, .sent = HF_SENT_YES}, "http.unknown", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES},
        {{.error_type = "http.body_too_large", .native = 23, .status = 200, .sent = HF_SENT_YES},
         "transport.http.body_too_large", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES},
        {{.error_type = "http.truncated_headers", .status = 200, .sent = HF_SENT_YES},
         "transport.http.truncated_headers", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES},
        {{.error_type = "local.descriptors", .native = 7, .sent = HF_SENT_NO},
         "transport.local.descriptors", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_NO},
        {{.error_type = "local.private_network", .native = 7, .sent = HF_SENT_NO},
         "transport.local.private_network", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_NO},
        {{.error_type = "odd.reason", .sent = HF_SENT_MAYBE},
         "transport.odd.reason", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE}, /* S0.3 */
        {{.error_type = "local.lookups", .sent = HF_SENT_NO},
         "local.lookups", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_NO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_outcome o;
        hfi_classify_attempt(&rows[i].facts, (struct hf_wall){now_us}, false, &o);
        assert_string_equal(o.rule, rows[i].rule);
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_int_equal(o.sent, rows[i].sent);
        if (rows[i].facts.message != NULL)
            assert_string_equal(o.message, rows[i].facts.message);
        if (strcmp(rows[i].rule, "local.lookups") == 0)
            assert_int_equal(o.kind, HF_OUTCOME_REJECTED);
    }
}

static void phases_and_stage_come_from_the_facts(void **state) {
    (void)state;
    struct hf_outcome o;
    struct hfi_attempt_facts facts = {
        .native = 28, .sent = HF_SENT_NO, .stage = HF_STAGE_TLS, .phases = {1, 2, -1, -1, 40}};
    hfi_classify_attempt(&facts, (struct hf_wall){now_us}, false, &o);
    assert_int_equal(o.stage, HF_STAGE_TLS);
    assert_int_equal(o.phases.connect_us, 2);
    assert_int_equal(o.phases.tls_us, -1);
    assert_int_equal(o.phases.total_us, 40);
}

static void own_limits_and_cancel(void **state) {
    (void)state;
    struct hf_outcome o;
    hfi_classify_timeout("timeout.attempt", HF_SENT_MAYBE, HF_STAGE_WAIT, &o);
    assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
    assert_int_equal(o.retry, HF_RETRY_NOW);
    assert_string_equal(o.error_type, "timeout.attempt");
    hfi_classify_timeout("timeout.total", HF_SENT_MAYBE, HF_STAGE_WAIT, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL); /* it may have cut the attempt after a millisecond */
    assert_int_equal(o.retry, HF_RETRY_LATER);
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
    hfi_classify_cancelled(HF_SENT_MAYBE, HF_STAGE_SEND, &o); /* B28 */
    assert_int_equal(o.kind, HF_OUTCOME_NEUTRAL);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    assert_string_equal(o.error_type, "call.cancelled");
}

static void r19_what_may_be_repeated(void **state) {
    (void)state;
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    static const char *const unsafe[] = {"POST", "PATCH", "get", "", "CONNECT"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        assert_true(hf_may_repeat(safe[i], false, HF_SENT_YES));
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++) {
        assert_false(hf_may_repeat(unsafe[i], false, HF_SENT_YES));
        assert_false(hf_may_repeat(unsafe[i], false, HF_SENT_MAYBE));
        assert_true(hf_may_repeat(unsafe[i], false, HF_SENT_NO));
        assert_true(hf_may_repeat(unsafe[i], true, HF_SENT_YES));
    }
    assert_false(hf_may_repeat(NULL, false, HF_SENT_MAYBE));
}

/* S0.3: any facts a transport may report end in one whole outcome. */
static void property_any_facts(void **state) {
    (void)state;
    static const char *const types[] = {NULL,       NULL,    "",  "http.body_too_large", "local", "local.lookups",
                                        "nonsense", "local.private_network"};
    static const char *const texts[] = {NULL,        "", "alert", "CONNECT tunnel failed", "SSL_ERROR_SYSCALL",
                                        "\xff\r\n", "Too large response headers"};
    static const char *const waits[] = {NULL, "", "5", "-1", "99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT",
                                        "x"};
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
#define PICK(n) ((size_t)(hfi_random_next(&random) % (n)))
#define OF(list) list[PICK(sizeof list / sizeof *list)]
    for (int round = 0; round < 100000; round++) {
        struct hf_outcome o;
        struct hfi_attempt_facts facts = {.native = (int)PICK(130) - 10,
                                          .native_errno = (int)PICK(140),
                                          .status = (int)PICK(1100) - 50,
                                          .stage = (enum hf_stage)PICK(8),
                                          .sent = (enum hf_sent)PICK(3),
                                          .error_type = OF(types),
                                          .message = OF(texts),
                                          .retry_after = OF(waits),
                                          .phases = {-1, -1, -1, -1, -1}};
        hfi_classify_attempt(&facts, (struct hf_wall){now_us}, PICK(2), &o);
        assert_true(o.touched && o.rule[0] != '\0');
        assert_string_not_equal(hf_outcome_kind_name(o.kind), "unknown");
        assert_string_not_equal(hf_class_name(o.klass), "unknown");
        assert_string_not_equal(hf_retry_name(o.retry), "unknown");
        assert_string_not_equal(hf_verdict_name(o.verdict), "unknown");
        assert_string_not_equal(hf_sent_name(o.sent), "unknown");
        assert_string_not_equal(hf_stage_name(o.stage), "unknown");
        assert_int_equal(o.kind == HF_OUTCOME_SUCCESS, o.klass == HF_CLASS_OK);
        assert_true(o.retry_after_ms >= -1);
        if (o.kind == HF_OUTCOME_SUCCESS) /* S0.1: nothing but a whole answer */
            assert_true(facts.error_type == NULL && (facts.native == 0 || facts.native == 22) && facts.status / 100 == 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s0_4_http_map),
        cmocka_unit_test(b9_evidence_of_life),
        cmocka_unit_test(b33_retry_after_makes_neutral_and_gates),
        cmocka_unit_test(a3_retry_after_is_handed_on_whole),
        cmocka_unit_test(every_curlcode_is_in_the_table),
        cmocka_unit_test(curl_verdicts),
        cmocka_unit_test(curl_names),
        cmocka_unit_test(facts_decide_where_the_code_cannot),
        cmocka_unit_test(phases_and_stage_come_from_the_facts),
        cmocka_unit_test(own_limits_and_cancel),
        cmocka_unit_test(r19_what_may_be_repeated),
        cmocka_unit_test(property_any_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
