/* SPDX-License-Identifier: MIT */
/*
 * Checks and copies how a downstream is reached: files of certificates, least TLS, HTTP/2, proxy, redirects. What is
 * wrong is told at the start with its key, not by the first call. Must never quote the proxy. Any thread.
 */
#include "resilience/reach.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/pem.h"
#include "resilience/url.h"

#define REDIRECTS_MAX 5

/* NULL or what is wrong with it. */
static const char *proxy_fault(const char *proxy) {
    struct hfi_url url;
    if (strncasecmp(proxy, "http://", 7) != 0) /* https proxies would be another protocol */
        return "it does not start with http://";
    const char *wrong = hfi_url_split(proxy, &url);
    if (wrong)
        return wrong;
    if (url.host[url.host_length] != ':')
        return "it has no port";
    return url.query || (url.place[0] && strcmp(url.place, "/") != 0) ? "a path or a query follows" : NULL;
}

static int check_tls(const struct hf_downstream_options *options, struct hf_error *error) {
    bool https = !options->url || strncasecmp(options->url, "https://", 8) == 0; /* per_host: any */
    if (!options->client_cert != !options->client_key)
        return hfi_fail(error, HF_EINVAL, options->name, "give both, they may be one file",
                        "%s: there is no %s, and the certificate and its key belong together",
                        options->client_cert ? "client_cert" : "client_key",
                        options->client_cert ? "client_key" : "client_cert");
    if (options->client_cert && !https)
        return hfi_fail(error, HF_EINVAL, options->name, "write the url as https://, or leave client_cert out",
                        "client_cert: the url is http, which shows no certificate to anybody");
    if (options->http2 && !https)
        return hfi_fail(error, HF_EINVAL, options->name, "write the url as https://, or leave http2 out",
                        "http2: the url is http; both ends agree on HTTP/2 within TLS only");
    if (options->tls_min != HF_TLS_1_2 && options->tls_min != HF_TLS_1_3)
        return hfi_fail(error, HF_EINVAL, options->name, "HF_TLS_1_2 or HF_TLS_1_3", "tls_min: %d is neither",
                        (int)options->tls_min);
    return 0;
}

static int check_files(const struct hf_downstream_options *options, struct hf_error *error) {
    const struct {
        const char *key, *path;
        enum hfi_pem kind;
    } files[] = {{"ca_file", options->ca_file, HFI_PEM_CERTIFICATE},
                 {"client_cert", options->client_cert, HFI_PEM_CERTIFICATE},
                 {"client_key", options->client_key, HFI_PEM_KEY}};
    char why[HFI_PEM_FAULT_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].path && !hfi_pem_check(files[i].path, files[i].kind, why))
            return hfi_fail(error, HF_EINVAL, options->name,
                            files[i].kind == HFI_PEM_KEY ? "give a readable PEM file with the key, without a passphrase"
                                                         : "give a readable PEM file with BEGIN CERTIFICATE",
                            "%s %s: %s", files[i].key, files[i].path, why);
    if (options->client_key && !hfi_pem_check_pair(options->client_cert, options->client_key, why))
        return hfi_fail(error, HF_EINVAL, options->name,
                        "give the key that the certificate was made for; in a chain its certificate comes first",
                        "client_key %s with client_cert %s: %s", options->client_key, options->client_cert, why);
    return 0;
}

int hfi_reach_check(const struct hf_downstream_options *options, struct hf_error *error) {
    const char *fault = options->proxy ? proxy_fault(options->proxy) : NULL;
    if (fault)
        return hfi_fail(error, HF_EINVAL, options->name, "write it as http://[user:password@]host:port", "proxy: %s",
                        fault);
    if (options->proxy && options->deny_private_networks)
        return hfi_fail(error, HF_EINVAL, options->name, "leave one of them out",
                        "proxy: it connects for us, so private networks cannot be denied");
    if (options->redirects_max > REDIRECTS_MAX)
        return hfi_fail(error, HF_EINVAL, options->name, "a chain of more is a loop", "redirects.max: %u is above %d",
                        options->redirects_max, REDIRECTS_MAX);
    if (options->redirects_other_hosts && options->redirects_max == 0)
        return hfi_fail(error, HF_EINVAL, options->name, "set redirects.max, or leave other_hosts out",
                        "redirects.other_hosts: with redirects.max 0 none is followed");
    int rc = check_tls(options, error);
    return rc ? rc : check_files(options, error);
}

static bool copy(char **to, const char *from) {
    *to = from ? hfi_strdup(from) : NULL;
    return *to || !from;
}

int hfi_reach_init(struct hfi_reach *reach, const struct hf_downstream_options *options) {
    reach->tls13 = options->tls_min == HF_TLS_1_3;
    reach->http2 = options->http2;
    reach->redirects = options->redirects_max;
    reach->other_hosts = options->redirects_other_hosts;
    bool copied = copy(&reach->ca_file, options->ca_file) && copy(&reach->client_cert, options->client_cert) &&
                  copy(&reach->client_key, options->client_key) && copy(&reach->proxy, options->proxy);
    return copied ? 0 : HF_ENOMEM;
}

void hfi_reach_end(struct hfi_reach *reach) {
    if (reach->proxy)
        explicit_bzero(reach->proxy, strlen(reach->proxy));
    hfi_free(reach->ca_file);
    hfi_free(reach->client_cert);
    hfi_free(reach->client_key);
    hfi_free(reach->proxy);
    memset(reach, 0, sizeof *reach);
}
