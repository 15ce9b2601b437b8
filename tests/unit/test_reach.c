/* SPDX-License-Identifier: MIT */
/* How a downstream is reached: what its options and its PEM files may be. Bad input of issue 3, 2.8. */
#include "support/support.h"

#include <fnmatch.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/http.h"
#include "resilience/pem.h"

static char path[] = "/tmp/holdfast-pem-XXXXXX";

static void write_file(const char *text, size_t length) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

/* Made for this test and used nowhere: one certificate with its key, and the key of another. */
#define CERT \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBbjCCARWgAwIBAgIUQMtE6sTk4dgLEZDdw5nAB5kV3cMwCgYIKoZIzj0EAwIw\n" \
    "DDEKMAgGA1UEAwwBYTAgFw0yNjExMzAxNjM0NTlaGA8yMTI2MTEwNjE2MzQ1OVow\n" \
    "DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMVfJpBYhIiW\n" \
    "SKV0kmrzfMJgsejj1MoauUgJRC3Sj0ypCVREb/zYYMrm4S69O+IEXfYgKjJC3Q8g\n" \
    "HT7vTzDdOpyjUzBRMB0GA1UdDgQWBBRjGg0TvEEr/32kILaV9Khv/VhRaTAfBgNV\n" \
    "HSMEGDAWgBRjGg0TvEEr/32kILaV9Khv/VhRaTAPBgNVHRMBAf8EBTADAQH/MAoG\n" \
    "CCqGSM49BAMCA0cAMEQCIGBNAXcDaZW6UO3nwxFgpmisYIOsEUr8Dx6mhyd6LBr3\n" \
    "AiAnIm3k2OwUbeWOYe2HHkK+RzX+/yR1l2ci6198r4u9Jg==\n" \
    "-----END CERTIFICATE-----\n"
#define KEY \
    "-----BEGIN EC PRIVATE KEY-----\n" \
    "MHcCAQEEIJ4yrrXGy/Mk9Br5TZ2QikrGj7jmr7tBuxOD+lRJ5pKfoAoGCCqGSM49\n" \
    "AwEHoUQDQgAExV8mkFiEiJZIpXSSavN8wmCx6OPUyhq5SAlELdKPTKkJVERv/Nhg\n" \
    "yubhLr074gRd9iAqMkLdDyAdPu9PMN06nA==\n" \
    "-----END EC PRIVATE KEY-----\n"
#define OTHER_KEY \
    "-----BEGIN EC PRIVATE KEY-----\n" \
    "MHcCAQEEIGQhYbMvSoCD0jMR1adbmty0/m1IWA1EeEXqi9xkCpUpoAoGCCqGSM49\n" \
    "AwEHoUQDQgAEuRmypqc9G0nySKSx04gZzJIJlPttlDAsrFDZfsov+irEStSUf0TA\n" \
    "QUv4T2njlWxLcyRck3UnTfzFXNBTzM6e6A==\n" \
    "-----END EC PRIVATE KEY-----\n"
#define NO_CERT "-----BEGIN CERTIFICATE-----\nMIIB\nAQ==\n-----END CERTIFICATE-----\n"
#define NO_KEY "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\n"
static void test_pem(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum hfi_pem kind;
        const char *fault; /* NULL: good */
    } rows[] = {
        {CERT, HFI_PEM_CERTIFICATE, NULL},
        {"a comment\r\n" CERT KEY CERT, HFI_PEM_CERTIFICATE, NULL},
        {CERT KEY, HFI_PEM_KEY, NULL},
        {"-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n"
         KEY, HFI_PEM_KEY, NULL},
        {NO_CERT, HFI_PEM_CERTIFICATE, "certificate 1 in it cannot be decoded: *"},
        {CERT CERT NO_CERT CERT, HFI_PEM_CERTIFICATE, "certificate 3 in it cannot be decoded: *"},
        {NO_KEY, HFI_PEM_KEY, "the key in it cannot be decoded: *"},
        {CERT NO_KEY, HFI_PEM_KEY, "the key in it cannot be decoded: *"},
        {"", HFI_PEM_CERTIFICATE, "there is no certificate in it"},
        {KEY, HFI_PEM_CERTIFICATE, "there is no certificate in it"},
        {CERT, HFI_PEM_KEY, "there is no private key in it"},
        {CERT "-----BEGIN CERTIFICATE-----\nMIIB\n", HFI_PEM_CERTIFICATE, "a BEGIN CERTIFICATE has no END"},
        {"-----BEGIN CERTIFICATE-----\nMIIB\n" CERT, HFI_PEM_CERTIFICATE, "a BEGIN CERTIFICATE has no END"},
        {"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", HFI_PEM_CERTIFICATE,
         "its CERTIFICATE is not Base64"},
        {"-----BEGIN CERTIFICATE-----\nM\x80IB\n-----END CERTIFICATE-----\n", HFI_PEM_CERTIFICATE,
         "its CERTIFICATE is not Base64"},
        {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n", HFI_PEM_KEY,
         "the key has a passphrase"},
        {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB\n-----END RSA PRIVATE KEY-----\n",
         HFI_PEM_KEY, "the key has a passphrase"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[HFI_PEM_FAULT_MAX] = "";
        write_file(rows[i].text, strlen(rows[i].text));
        if (hfi_pem_check(path, rows[i].kind, why) != !rows[i].fault ||
            (rows[i].fault && fnmatch(rows[i].fault, why, 0) != 0))
            fail_msg("row %zu: %s", i, why);
        assert_int_equal(ERR_peek_error(), 0); /* libcurl would take it for its own */
    }
}

static void test_files_that_are_none(void **state) {
    (void)state;
    char why[HFI_PEM_FAULT_MAX], fifo[64];
    assert_false(hfi_pem_check("/nowhere/x.pem", HFI_PEM_KEY, why));
    assert_string_equal(why, "it cannot be read: No such file or directory");
    assert_false(hfi_pem_check("/tmp", HFI_PEM_KEY, why));
    assert_string_equal(why, "it is not a file");
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_false(hfi_pem_check(fifo, HFI_PEM_KEY, why)); /* and does not hang */
    assert_string_equal(why, "it is not a file");
    unlink(fifo);
    assert_int_equal(truncate(path, (16 << 20) + 1), 0);
    assert_false(hfi_pem_check(path, HFI_PEM_KEY, why));
    assert_string_equal(why, "it is larger than 16 MiB");
    write_file("\0\1\2\xff", 4);
    assert_false(hfi_pem_check(path, HFI_PEM_CERTIFICATE, why));
}

static int check(const struct hf_downstream_options *options, char *text, size_t room) {
    struct hf_error error;
    hf_error_init(&error);
    int rc = hf_downstream_check(options, &error);
    hf_error_print(&error, text, room);
    return rc;
}

static void test_proxies(void **state) {
    (void)state;
    char text[512];
    static const char *const good[] = {"http://p:1",           "HTTP://p.test:65535/",
                                       "http://u:hush@p:3128", "http://u%40x:hu%2Fsh@p:3128",
                                       "http://[::1]:8080",    "http://u@10.0.0.1:80"};
    static const char *const bad[] = {"",
                                      "p:80",
                                      "https://u:hush@p:1",
                                      "socks5://p:1",
                                      "http://p",
                                      "http://p:",
                                      "http://p:0",
                                      "http://p:65536",
                                      "http://p:8o",
                                      "http://:80",
                                      "http://u:hush@:80",
                                      "http://p:80/hush",
                                      "http://p:80?hush",
                                      "http://p:80#hush",
                                      "http://hush p:80",
                                      "http://p:80\r\nX: hush",
                                      "http://[::1:80",
                                      "http://[::1]",
                                      "http://u:h/ush@p:80",
                                      "http://p:123456",
                                      "http://\xc3\xa9:80"};
    struct hf_downstream_options options = hf_downstream_at("d", "http://a");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        options.proxy = good[i];
        if (check(&options, text, sizeof text) != 0)
            fail_msg("%s: %s", good[i], text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.proxy = bad[i];
        if (check(&options, text, sizeof text) != HF_EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_null(strstr(text, "hush"));
        assert_non_null(strstr(text, "proxy"));
    }
}

static void test_options(void **state) {
    (void)state;
    char text[512];
    struct hf_downstream_options options = hf_downstream_at("d", "https://a");
    write_file(CERT KEY, sizeof CERT KEY - 1);
    options.client_cert = options.client_key = path;
    options.redirects_max = 5;
    options.redirects_other_hosts = true;
    options.http2 = true;
    options.tls_min = HF_TLS_1_3;
    assert_int_equal(check(&options, text, sizeof text), 0);
    options.client_key = NULL;
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    assert_non_null(strstr(text, "client_key"));
    options.client_cert = NULL;
    options.redirects_max = 6;
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    options.redirects_max = 1;
    options.deny_private_networks = true;
    assert_int_equal(check(&options, text, sizeof text), 0);
    options.proxy = "http://p:80";
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    assert_non_null(strstr(text, "private networks"));
    options.proxy = NULL;
    options.redirects_max = 0;
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    options.redirects_other_hosts = false;
    options.tls_min = (enum hf_tls)7;
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    options.tls_min = HF_TLS_1_2;
    options.url = "http://a";
    assert_int_equal(check(&options, text, sizeof text), HF_EINVAL);
    assert_non_null(strstr(text, "http2"));
}

static int write_key(const char *key_path, const char *text) {
    FILE *file = fopen(key_path, "w");
    int rc = file && fputs(text, file) >= 0 ? 0 : -1;
    return file && fclose(file) == 0 ? rc : -1;
}

/* A key that is not the certificate's is told before any call, with both files; a chain begins with our own. */
static void test_pairs(void **state) {
    (void)state;
    static const struct {
        const char *cert, *key;
        bool good;
    } rows[] = {{CERT, KEY, true},           {CERT, OTHER_KEY, false}, {KEY CERT, CERT KEY OTHER_KEY, true},
                {CERT, OTHER_KEY KEY, false}, {CERT CERT, KEY, true}};
    char key_path[64], text[512];
    struct hf_downstream_options options = hf_downstream_at("d", "https://a");
    snprintf(key_path, sizeof key_path, "%s.key", path);
    options.client_cert = path;
    options.client_key = key_path;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(rows[i].cert, strlen(rows[i].cert));
        assert_int_equal(write_key(key_path, rows[i].key), 0);
        struct hf_client *client = NULL;
        struct hf_error error;
        hf_error_init(&error);
        assert_int_equal(check(&options, text, sizeof text), rows[i].good ? 0 : HF_EINVAL);
        assert_int_equal(hf_client_new(&options, 1, &client, &error), rows[i].good ? 0 : HF_EINVAL);
        hf_client_close(client);
        assert_int_equal(ERR_peek_error(), 0);
        if (rows[i].good)
            continue;
        assert_non_null(strstr(text, path));
        assert_non_null(strstr(text, key_path));
        assert_non_null(strstr(text, "is not the key of the first certificate"));
    }
    /* A reload refuses the same, and what was there stays. */
    struct hf_client *client = NULL;
    struct hf_error error;
    struct hf_downstream_options plain = hf_downstream_at("d", "https://a");
    hf_error_init(&error);
    assert_int_equal(hf_client_new(&plain, 1, &client, &error), 0);
    write_file(CERT, strlen(CERT));
    assert_int_equal(write_key(key_path, OTHER_KEY), 0);
    assert_int_equal(hf_client_reload(client, &options, 1, &error), HF_EINVAL);
    assert_non_null(strstr(error.why, key_path));
    assert_int_equal(write_key(key_path, KEY), 0);
    assert_int_equal(hf_client_reload(client, &options, 1, &error), 0);
    hf_client_close(client);
    unlink(key_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pem), cmocka_unit_test(test_files_that_are_none),
                                       cmocka_unit_test(test_proxies), cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_pairs)};
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed ? 1 : 0;
}
