/* SPDX-License-Identifier: MIT */
/*
 * What single keys cannot know: that names lead somewhere, that a kind has what it needs, that texts have the form their
 * use demands, that no two outboxes have one file. The ladder's numbers are check.c's. Must never open a file.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "holdfast/outbox.h"
#include "holdfast/units.h"
#include "program/config/bind.h"
#include "program/config/config.h"
#include "program/nearest.h"

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const struct hfi_node *at(const struct hfi_item *item, const char *path) {
    return hfi_tree_nearest(item->node, path);
}

static bool is_web_url(const char *url) {
    return (strncasecmp(url, "http://", 7) == 0 && url[7]) || (strncasecmp(url, "https://", 8) == 0 && url[8]);
}

/* Where its calls go: to its own url, or to that of each call. */
static void check_place(struct hfi_binding *binding, const struct hfi_downstream_setting *downstream) {
    const struct hfi_item *item = &downstream->item;
    if (!downstream->url && !downstream->per_host)
        hfi_bind_error(binding, "config.missing_key", item->node, "add url: https://host[:port][/path]",
                       "the key `url` is missing");
    if (downstream->url && downstream->per_host)
        hfi_bind_error(binding, "config.per_host", at(item, "url"), "leave one of the two out",
                       "with per_host each call brings a url of its own");
    if (downstream->probe_path && downstream->per_host)
        hfi_bind_error(binding, "config.per_host", at(item, "probe"), "leave it out",
                       "with per_host there is no one place to probe");
    if (!downstream->per_host && hfi_tree_child(item->node, "hosts_max"))
        hfi_bind_error(binding, "config.per_host", at(item, "hosts_max"), "add per_host: true, or leave it out",
                       "it says nothing without per_host");
}

static void check_table(struct hfi_binding *binding, const struct hfi_downstream_setting *downstream) {
    const struct hfi_item *item = &downstream->item;
    if (downstream->retry_table.count > HF_BACKOFF_TABLE_MAX)
        hfi_bind_error(binding, "config.table", at(item, "retry.table"), "the last one is used again and again",
                       "%zu waits, %d at most", downstream->retry_table.count, HF_BACKOFF_TABLE_MAX);
    if (downstream->retry_table.count > 0 && at(item, "retry.backoff") != at(item, "retry") &&
        downstream->backoff != HF_BACKOFF_TABLE)
        hfi_bind_error(binding, "config.table", at(item, "retry.table"), "leave backoff out", "`backoff` is not table");
    if (downstream->retry_table.count == 0 && downstream->backoff == HF_BACKOFF_TABLE)
        hfi_bind_error(binding, "config.table", at(item, "retry.backoff"), "add table: [200ms, 1s]", "the key `table` is missing");
}

/* What stands in the file is shown without its password; what a file or the environment gave is not shown at all: it may
   be another secret by mistake. */
static void check_url(struct hfi_binding *binding, const struct hfi_downstream_setting *downstream) {
    const struct hfi_node *node = at(&downstream->item, "url");
    const char *url = downstream->url;
    char shown[200];
    if (!url || hfi_secret_is_reference(url) || (is_web_url(url) && !strpbrk(url, "?# \t")))
        return; /* one that could not be read is told already */
    hf_url_redact(url, shown, sizeof shown);
    bool elsewhere = node->text && hfi_secret_is_reference(node->text);
    hfi_bind_error(binding, "config.url", node, "write https://host[:port][/path]",
                   "%s%s%s is not an http or https URL without query", elsewhere ? "" : "`", elsewhere ? "its value" : shown,
                   elsewhere ? "" : "`");
}

static void check_downstream(struct hfi_binding *binding, const struct hfi_downstream_setting *downstream) {
    const struct hfi_item *item = &downstream->item;
    const char *probe = downstream->probe_path;
    check_place(binding, downstream);
    check_url(binding, downstream);
    if (probe && (probe[0] != '/' || strpbrk(probe, "?# \t")))
        hfi_bind_error(binding, "config.path", at(item, "probe.path"), "begin it with /, without query",
                       "`%.100s` is not a path", probe);
    check_table(binding, downstream);
}

/* There, and no regular file: what is not there yet is made. */
static bool is_no_file(const char *path) {
    struct stat found;
    return path[strlen(path) - 1] == '/' || (stat(path, &found) == 0 && !S_ISREG(found.st_mode));
}

#define KIND(kind) (1u << (kind))
#define ISOLATED (1u << 8) /* a plugin with isolate: process */
#define THREAD (1u << 9)   /* a plugin without */

/* Keys that say nothing for a job's kind are slips. */
static void check_foreign(struct hfi_binding *binding, const struct hfi_job_setting *job) {
    static const unsigned http = KIND(HFI_JOB_HTTP), exec = KIND(HFI_JOB_EXEC), child = KIND(HFI_JOB_EXEC) | ISOLATED,
                          plugin = KIND(HFI_JOB_PLUGIN);
    const struct {
        const char *key;
        unsigned kinds;
    } owners[] = {{"downstream", http}, {"method", http}, {"path", http}, {"query", http}, {"headers", http},
                  {"url", http}, {"body_field", http}, {"idempotency_key", http}, {"rules", http}, {"command", exec},
                  {"environment", child}, {"directory", child}, {"kill_grace", child}, {"rlimits", child},
                  {"library", plugin}, {"isolate", plugin}, {"heartbeat_timeout", plugin},
                  {"abandon_after", THREAD}};
    unsigned own = KIND(job->kind) | (job->kind != HFI_JOB_PLUGIN ? 0 : job->isolate != 0 ? ISOLATED : THREAD);
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        const struct hfi_node *node = hfi_tree_child(job->item.node, owners[i].key);
        if (node && !(owners[i].kinds & own))
            hfi_bind_error(binding, "config.kind", node, "leave it out, or change kind", "only kind %s has this key",
                           owners[i].kinds == http     ? "http"
                           : owners[i].kinds == plugin ? "plugin"
                           : owners[i].kinds == exec   ? "exec"
                           : owners[i].kinds == THREAD ? "plugin without isolate"
                                                       : "exec, or plugin with isolate: process,");
    }
}

/* Silence that the timeout always ends first would never be noticed. */
static void check_silence(struct hfi_binding *binding, const struct hfi_config *config, const struct hfi_job_setting *job) {
    char silence[24], limit[24];
    int64_t timeout = job->execution_timeout_ms >= 0 ? job->execution_timeout_ms : config->settings.execution_timeout_ms;
    if (job->heartbeat_timeout_ms == 0 || timeout == 0 || job->heartbeat_timeout_ms < timeout)
        return;
    hfi_bind_error(binding, "config.heartbeat_timeout", at(&job->item, "heartbeat_timeout"), "make it shorter, or execution_timeout longer",
                   "%s of silence do not fit into an execution_timeout of %s",
                   hf_duration_print(job->heartbeat_timeout_ms, silence), hf_duration_print(timeout, limit));
}

static void check_target(struct hfi_binding *binding, const struct hfi_config *config, const struct hfi_job_setting *job) {
    struct hfi_nearest nearest;
    if (!job->downstream) {
        hfi_bind_error(binding, "config.missing_key", job->item.node, "name one of downstreams", "the key `downstream` is missing");
        return;
    }
    const struct hfi_downstream_setting *found =
        hfi_items_find(&config->settings.downstreams, sizeof *found, job->downstream, &nearest);
    if (found && found->per_host && !job->url)
        hfi_bind_error(binding, "config.per_host", at(&job->item, "downstream"), "add url: \"{url}\", or name a downstream with a url",
                       "`%.120s` takes a URL with every call, and the job has no url", job->downstream);
    if (found && !found->per_host && job->url)
        hfi_bind_error(binding, "config.per_host", at(&job->item, "url"), "give a path, or make the downstream per_host",
                       "`%.120s` has a url of its own", job->downstream);
    if (found)
        return;
    hfi_bind_error(binding, "config.reference", at(&job->item, "downstream"),
                   nearest.best ? hfi_arena_print(binding->arena, "did you mean `%s`?", nearest.best) : "add it to downstreams",
                   "there is no downstream `%.120s`", job->downstream);
}

static void check_http(struct hfi_binding *binding, const struct hfi_config *config, const struct hfi_job_setting *job) {
    check_target(binding, config, job);
    if (!*job->method || job->method[strspn(job->method, TOKEN)])
        hfi_bind_error(binding, "config.method", at(&job->item, "method"), "write POST, PUT, GET …", "`%.60s` is not a method",
                       job->method);
    if (*job->path && (job->path[0] != '/' || strpbrk(job->path, " \t\r\n?#"))) {
        char path[120]; /* with what may be secret in a query */
        hf_url_redact(job->path, path, sizeof path);
        hfi_bind_error(binding, "config.path", at(&job->item, "path"), "begin it with /, without blanks; give a query as query",
                       "`%s` is not a path", path);
    }
    bool read = job->query && (binding->secrets || !hfi_secret_is_reference(job->query));
    for (const char *c = read ? job->query : ""; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || *c == '#') {
            hfi_bind_error(binding, "config.query", at(&job->item, "query"), "percent-encode it",
                           "it holds a blank, a control character, a byte outside ASCII or #");
            break;
        }
}

static void check_exec(struct hfi_binding *binding, const struct hfi_job_setting *job) {
    if (job->command.count == 0)
        hfi_bind_error(binding, "config.missing_key", at(&job->item, "command"), "write command: [/path/to/program]",
                       "kind exec needs a `command`");
    else if (job->command.items[0][0] != '/')
        hfi_bind_error(binding, "config.command", at(&job->item, "command"), "write its absolute path",
                       "`%.100s` is not an absolute path", job->command.items[0]);
    else if (is_no_file(job->command.items[0]))
        hfi_bind_error(binding, "config.command", at(&job->item, "command"), "name a program", "`%.100s` is no file",
                       job->command.items[0]);
    if (job->directory && job->directory[0] != '/')
        hfi_bind_error(binding, "config.path", at(&job->item, "directory"), "write an absolute path", "`%.100s` is not absolute",
                       job->directory);
    for (size_t i = 0; i < job->environment.count; i++)
        if (strcspn(job->environment.items[i], "=") == 0)
            hfi_bind_error(binding, "config.environment", at(&job->item, "environment"), "write NAME=value or NAME",
                           "`%.60s` has no name", job->environment.items[i]);
}

static void check_plugin(struct hfi_binding *binding, const struct hfi_job_setting *job) {
    struct stat about;
    if (!job->library)
        hfi_bind_error(binding, "config.missing_key", at(&job->item, "library"), "write library: /path/to/it.so",
                       "kind plugin needs a `library`");
    else if (job->library[0] != '/')
        hfi_bind_error(binding, "config.path", at(&job->item, "library"), "write an absolute path", "`%.100s` is not absolute",
                       job->library);
    else if (is_no_file(job->library))
        hfi_bind_error(binding, "config.path", at(&job->item, "library"), "name a shared object", "`%.100s` is no file",
                       job->library);
    else if (stat(job->library, &about) == 0 && (about.st_mode & S_IWOTH)) {
        const struct hfi_node *node = at(&job->item, "library");
        hfi_problem_add(binding->problems, false, "config.plugin", node->line, node->column,
                        hfi_node_path(binding->arena, node), "chmod o-w",
                        "everybody may write `%.100s`, and put code into the node with it", job->library);
    }
}

static void check_queue(struct hfi_binding *binding, const struct hfi_config *config, const struct hfi_job_setting *job) {
    const struct hfi_items *queues = &config->settings.queues;
    const struct hfi_node *node = at(&job->item, "queue");
    struct hfi_nearest nearest;
    if (queues->count == 0 || strcmp(job->queue, "default") == 0 ||
        hfi_items_find(queues, sizeof(struct hfi_queue_setting), job->queue, &nearest))
        return;
    hfi_problem_add(binding->problems, false, "config.reference", node->line, node->column, hfi_node_path(binding->arena, node),
                    nearest.best ? hfi_arena_print(binding->arena, "did you mean `%s`?", nearest.best) : "add it to queues",
                    "there is no queue `%.120s` here: it gets the defaults", job->queue);
}

static void check_job(struct hfi_binding *binding, const struct hfi_config *config, const struct hfi_job_setting *job) {
    if (!hfi_tree_child(job->item.node, "kind"))
        return; /* said already */
    check_foreign(binding, job);
    check_silence(binding, config, job);
    if (job->kind == HFI_JOB_HTTP)
        check_http(binding, config, job);
    if (job->kind == HFI_JOB_EXEC)
        check_exec(binding, job);
    if (job->kind == HFI_JOB_PLUGIN)
        check_plugin(binding, job);
    if (!*job->queue || strlen(job->queue) > 120)
        hfi_bind_error(binding, "config.name", at(&job->item, "queue"), "choose another one", "a queue's name has 1 to 120 bytes");
    else
        check_queue(binding, config, job);
}

/* `sql.40P01`: words of letters, digits, - and _ joined by single dots. A bad entry would never match [S2.16]. */
static bool is_error_type(const char *text) {
    for (size_t length = 0;; text += length + 1) {
        length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
        if (length == 0 || text[length] != '.')
            return length > 0 && text[length] == '\0';
    }
}

static void check_never_retry(struct hfi_binding *binding, const struct hfi_texts *list, const struct hfi_node *node) {
    for (size_t i = 0; i < list->count; i++)
        if (!is_error_type(list->items[i]))
            hfi_bind_error(binding, "config.error_type", node, "write a prefix such as http.404, sql or validation",
                           "`%.70s` is not a dotted error type", list->items[i]);
}

/* The URL may hold a password: the complaint does not show it. */
static void check_store(struct hfi_binding *binding, const struct hfi_config *config) {
    const char *store = config->settings.store;
    if (store && binding->store && strcmp(store, "memory:") != 0 && (strncmp(store, "sqlite:", 7) != 0 || !store[7]))
        hfi_bind_error(binding, "config.store", hfi_tree_nearest(config->root, "store"), "write sqlite:PATH",
                       "it names no store this program knows");
    else if (store && binding->store && strncmp(store, "sqlite:", 7) == 0 && is_no_file(store + 7))
        hfi_bind_error(binding, "config.store", hfi_tree_nearest(config->root, "store"), "name a file, such as sqlite:/var/lib/holdfast/jobs.db",
                       "it names a folder, or something else that is no file");
}

static void check_outbox(struct hfi_binding *binding, const struct hfi_outbox_setting *outbox) {
    if (outbox->file && (!outbox->file[0] || strcmp(outbox->file, "sqlite:") == 0))
        hfi_bind_error(binding, "config.path", at(&outbox->item, "file"), "write the path of the application's file", "it names no file");
    if (outbox->source && (!outbox->source[0] || strlen(outbox->source) > 120))
        hfi_bind_error(binding, "config.name", at(&outbox->item, "source"), "choose another one", "a source has 1 to 120 bytes");
}

static const char *outbox_path(struct hfi_binding *binding, const struct hfi_outbox_setting *outbox) {
    bool url = strncmp(outbox->file, "sqlite:", 7) == 0;
    return hfi_beside(binding->arena, binding->problems->file, url ? outbox->file + 7 : outbox->file);
}

/* Two relays on one file would make two jobs of each row. */
static void check_outbox_file(struct hfi_binding *binding, const struct hfi_settings *settings, size_t index) {
    const struct hfi_outbox_setting *outboxes = settings->outboxes.items, *outbox = &outboxes[index];
    const char *store = settings->store;
    if (!outbox->file || !*outbox->file)
        return; /* said already */
    const char *path = outbox_path(binding, outbox);
    if (is_no_file(path))
        hfi_bind_error(binding, "config.path", at(&outbox->item, "file"), "name the application's own file", "`%.100s` is no file",
                       path);
    if (store && strncmp(store, "sqlite:", 7) == 0 && hf_outbox_same_file(path, store))
        hfi_bind_error(binding, "config.path", at(&outbox->item, "file"), "name the application's own file", "it is the store's file");
    for (size_t i = 0; i < index; i++)
        if (outboxes[i].file && *outboxes[i].file && hf_outbox_same_file(path, outbox_path(binding, &outboxes[i])))
            hfi_bind_error(binding, "config.path", at(&outbox->item, "file"), "one outbox is enough for a file",
                           "it is the file of the outbox `%.120s`", outboxes[i].item.name);
}

/* What a sink has to be the library knows; secrets that were not read are not looked at, nor shown by a complaint. */
static void check_sink(struct hfi_binding *binding, const struct hfi_alert_setting *alert) {
    const char *const places[] = {"webhook", "mail", "command"};
    struct hf_sink_options sink;
    struct hf_error error;
    int count = 0;
    for (int i = 0; i < 3; i++)
        count += hfi_tree_child(alert->item.node, places[i]) != NULL;
    if (count != 1) {
        hfi_bind_error(binding, "config.sink", alert->item.node, "give it one of webhook, mail, command",
                       count == 0 ? "it says nowhere where its alerts go" : "it names more than one kind");
        return;
    }
    hfi_config_sink(alert, &sink);
    bool secret = sink.kind == HF_SINK_WEBHOOK || sink.user || sink.password;
    if ((secret && !binding->secrets) || (sink.kind == HF_SINK_WEBHOOK && !sink.url))
        return; /* not read, or said already */
    if (sink.kind == HF_SINK_WEBHOOK && !is_web_url(sink.url)) {
        hfi_bind_error(binding, "config.url", at(&alert->item, "webhook.url"), "write https://…",
                       "it is not an http or https URL");
        return;
    }
    hf_error_init(&error);
    if (hf_sink_check(&sink, &error) != 0)
        hfi_bind_error(binding, "config.sink", at(&alert->item, places[sink.kind]), error.fix, "%s", error.why);
}

void hfi_config_verify(struct hfi_config *config, struct hfi_binding *binding) {
    const struct hfi_settings *settings = &config->settings;
    const struct hfi_downstream_setting *downstreams = settings->downstreams.items;
    const struct hfi_job_setting *jobs = settings->jobs.items;
    const struct hfi_alert_setting *alerts = settings->alerts.items;
    if (settings->downstream.item.node)
        check_table(binding, &settings->downstream);
    for (size_t i = 0; i < settings->downstreams.count; i++)
        check_downstream(binding, &downstreams[i]);
    for (size_t i = 0; i < settings->jobs.count; i++)
        check_job(binding, config, &jobs[i]);
    for (size_t i = 0; i < settings->jobs.count; i++)
        check_never_retry(binding, &jobs[i].never_retry, at(&jobs[i].item, "never_retry"));
    for (size_t i = 0; i < settings->alerts.count; i++)
        check_sink(binding, &alerts[i]);
    const struct hfi_outbox_setting *outboxes = settings->outboxes.items;
    for (size_t i = 0; i < settings->outboxes.count; i++)
        check_outbox(binding, &outboxes[i]);
    for (size_t i = 0; i < settings->outboxes.count; i++)
        check_outbox_file(binding, settings, i);
    if (settings->node && (!*settings->node || strlen(settings->node) > 120))
        hfi_bind_error(binding, "config.name", hfi_tree_nearest(config->root, "node.name"), "choose another one",
                       "a node's name has 1 to 120 bytes");
    hfi_config_verify_forwards(config, binding);
    check_store(binding, config);
    check_never_retry(binding, &settings->never_retry, hfi_tree_nearest(config->root, "defaults.never_retry"));
}
