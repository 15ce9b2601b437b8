/* SPDX-License-Identifier: MIT */
/* `holdfast classify`: the verdicts of the library's own tables on one failure. No store, no configuration. */
#include <stdio.h>
#include <string.h>

#include "holdfast/classify.h"
#include "holdfast/units.h"
#include "program/commands/classify_table.h"
#include "program/commands/commands.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/words.h"

#define FORMS "http|curl|errno|sqlite|sqlstate|mssql|mysql|smtp|exit|signal"
enum form { HTTP, CURL, ERRNO, SQLITE, SQLSTATE, MSSQL, MYSQL, SMTP, EXIT, SIGNAL };
#define CHAIN_MAX 32

static const struct hfi_flag flags[] = {
    {.name = "method", .kind = HFI_FLAG_TEXT, .value = "M", .help = "HTTP method of the request (default: GET)"},
    {.name = "sent", .kind = HFI_FLAG_CHOICE, .value = "no|maybe|yes", .help = "may the server have seen it (default: what the table says)"},
    {.name = "key", .kind = HFI_FLAG_SWITCH, .help = "the request carries an idempotency key"},
    {.name = "retry-after", .kind = HFI_FLAG_TEXT, .value = "VALUE", .help = "http: the Retry-After header"},
    {.name = "text", .kind = HFI_FLAG_TEXT, .value = "MESSAGE", .help = "sqlstate: the server's message, where the code says too little"},
    {.name = "explain", .kind = HFI_FLAG_SWITCH, .help = "say what follows from each verdict, and why this rule decided"},
    {.name = "table", .kind = HFI_FLAG_OPTIONAL, .value = "NAME", .help = "print all tables, or one of them, instead"},
    {0},
};

struct asked {
    enum form form;
    int64_t numbers[CHAIN_MAX];
    size_t count;
    const char *texts[CHAIN_MAX]; /* sqlstate */
};

static int wrong(const char *form, const char *text, const char *fix) {
    return hfi_usage(form, fix, "`%s` is not known there", text);
}

/* What the numbers of a form may be. A name stands for one where `by_name` knows it, which gives -1 else. */
struct range {
    int64_t low, high;
    int (*by_name)(const char *);
    const char *fix;
};
static const struct range ranges[] = {
    [HTTP] = {100, 599, NULL, "write a status from 100 to 599"},
    [CURL] = {0, INT32_MAX, hf_curl_number, "write 28 or CURLE_OPERATION_TIMEDOUT"},
    [ERRNO] = {0, 4095, hf_errno_number, "write a name such as ECONNREFUSED"}, /* Linux has no more */
    [SQLITE] = {0, INT32_MAX, NULL, "write a result code such as 5"},
    [MSSQL] = {INT32_MIN, INT32_MAX, NULL, "write the number"}, /* clients have negative ones: -2 is their timeout */
    [MYSQL] = {0, INT32_MAX, NULL, "write the number"},
    [SMTP] = {200, 599, NULL, "write a reply from 200 to 599"},
    [EXIT] = {0, 255, NULL, "write a status from 0 to 255"},
    [SIGNAL] = {1, 64, hf_signal_number, "write a name such as SIGKILL"},
};

static int read_number(const char *form, const char *text, const struct range *range, int64_t *number) {
    if (!hfi_word_number(text, number)) {
        *number = range->by_name ? range->by_name(text) : -1;
        if (*number < 0)
            return wrong(form, text, range->fix);
    }
    if (*number < range->low || *number > range->high)
        return hfi_usage(form, range->fix, "%s is not within %lld and %lld", text, (long long)range->low,
                         (long long)range->high);
    return 0;
}

static int read_numbers(const struct hfi_options *options, struct asked *asked) {
    int code = 0;
    for (size_t i = 1; i < options->argument_count && code == 0; i++) {
        if (asked->count == CHAIN_MAX)
            return hfi_usage(options->arguments[0], NULL, "more than %d numbers", CHAIN_MAX);
        code = read_number(options->arguments[0], options->arguments[i], &ranges[asked->form],
                           &asked->numbers[asked->count++]);
    }
    return code;
}

static int read_form(const struct hfi_options *options, struct asked *asked) {
    struct hfi_nearest nearest;
    char fix[160] = "one of http, curl, errno, sqlite, sqlstate, mssql, mysql, smtp, exit, signal";
    int form = hfi_word_choice(FORMS, options->arguments[0]);
    if (form < 0) {
        hfi_nearest_init(&nearest, options->arguments[0]);
        hfi_word_offer(FORMS, &nearest);
        if (nearest.best)
            snprintf(fix, sizeof fix, "did you mean `%s`?", nearest.best);
        return hfi_usage("classify", fix, "`%s` is no form", options->arguments[0]);
    }
    if (options->argument_count < 2)
        return hfi_usage("classify", "see holdfast help classify", "what %s gave is missing", options->arguments[0]);
    if (form != MSSQL && form != MYSQL && form != SQLSTATE && options->argument_count > 2)
        return hfi_usage("classify", NULL, "`%s` is one argument too many", options->arguments[2]);
    asked->form = (enum form)form;
    return 0;
}

static bool is_sqlstate(const char *text) {
    return strlen(text) == 5 && strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5;
}

static int read_states(const struct hfi_options *options, struct asked *asked) {
    for (size_t i = 1; i < options->argument_count; i++) {
        if (asked->count == CHAIN_MAX)
            return hfi_usage("sqlstate", NULL, "more than %d codes", CHAIN_MAX);
        if (!is_sqlstate(options->arguments[i]))
            return wrong("sqlstate", options->arguments[i], "write five digits or capital letters, such as 40P01");
        asked->texts[asked->count++] = options->arguments[i];
    }
    return 0;
}

static int read_asked(const struct hfi_options *options, struct asked *asked) {
    int code = read_form(options, asked);
    if (code != 0)
        return code;
    return asked->form == SQLSTATE ? read_states(options, asked) : read_numbers(options, asked);
}

static void judge(const struct hfi_options *options, const struct asked *asked, struct hf_outcome *outcome) {
    const struct hfi_value *sent = hfi_flag(options, "sent");
    int numbers[CHAIN_MAX];
    for (size_t i = 0; i < asked->count; i++)
        numbers[i] = (int)asked->numbers[i];
    switch (asked->form) {
    case HTTP:
        hf_classify_http(numbers[0], hfi_flag_text(options, "retry-after", NULL), hf_time_now(), outcome);
        break;
    case CURL:
        hf_classify_curl(numbers[0], sent->given ? (enum hf_sent)sent->number : HF_SENT_MAYBE, outcome);
        break;
    case ERRNO:
        hf_classify_errno(numbers[0], outcome);
        break;
    case SQLITE:
        hf_classify_sqlite(numbers[0], outcome);
        break;
    case SQLSTATE:
        if (asked->count > 1)
            hf_classify_sqlstates(asked->texts, asked->count, outcome);
        else
            hf_classify_sqlstate_text(asked->texts[0], hfi_flag_text(options, "text", NULL), outcome);
        break;
    case MSSQL:
        hf_classify_mssql(numbers, asked->count, outcome);
        break;
    case MYSQL:
        hf_classify_mysql(numbers, asked->count, outcome);
        break;
    case SMTP:
        hf_classify_smtp(numbers[0], outcome);
        break;
    case EXIT:
        hf_classify_exit(numbers[0], outcome);
        break;
    case SIGNAL:
        hf_classify_signal(numbers[0], outcome);
        break;
    }
}

static const char *explain_class(enum hf_class class_of) {
    switch (class_of) {
    case HF_CLASS_OK:
        return "the job succeeds";
    case HF_CLASS_TRANSIENT:
        return "the job is executed again along its curve, and is dead when its executions are used up";
    case HF_CLASS_PERMANENT:
        return "the job is dead at once: another execution would fail the same way";
    default:
        return "the job is dead at once, as poison: it harms whoever runs it";
    }
}

static const char *explain_retry(enum hf_retry retry, bool may) {
    if (retry == HF_RETRY_LATER)
        return "not within this call: the wait asked for belongs to the job";
    if (retry == HF_RETRY_NONE)
        return "not within this call";
    if (!may)
        return "not within this call: the method is not safe to repeat, there is no key, and it may have been sent";
    return retry == HF_RETRY_FRESH ? "once more within the call, on a fresh connection" : "again within the call, after a short wait";
}

static const char *explain_verdict(enum hf_verdict verdict) {
    return verdict == HF_VERDICT_SUCCESS   ? "counts for the downstream's health"
           : verdict == HF_VERDICT_FAILURE ? "counts against it; enough of them open the breaker"
                                           : "says nothing about the downstream's health";
}

static void print_people(const struct hf_outcome *outcome, const struct asked *asked, enum hf_sent sent, bool may, bool explain) {
    bool web = asked->form == HTTP || asked->form == CURL;
    int64_t wait = hf_outcome_get_retry_after_ms(outcome);
    hfi_field("outcome", "%s", hf_outcome_kind_name(hf_outcome_get_kind(outcome)));
    hfi_field("class", "%s%s%s", hf_class_name(hf_outcome_get_class(outcome)), explain ? ": " : "",
              explain ? explain_class(hf_outcome_get_class(outcome)) : "");
    hfi_field("retry", "%s%s%s", hf_retry_name(hf_outcome_get_retry(outcome)), explain ? ": " : "",
              explain ? explain_retry(hf_outcome_get_retry(outcome), may || !web) : "");
    hfi_field("breaker", "%s%s%s", hf_verdict_name(hf_outcome_get_verdict(outcome)), explain ? ": " : "",
              explain ? explain_verdict(hf_outcome_get_verdict(outcome)) : "");
    hfi_field("rule", "%s", hf_outcome_get_rule(outcome));
    hfi_field("error type", "%s", hf_outcome_get_error_type(outcome));
    hfi_field("message", "%s", hf_outcome_get_message(outcome));
    hfi_field("stage", "%s", hf_stage_name(hf_outcome_get_stage(outcome)));
    hfi_field("sent", "%s", hf_sent_name(sent));
    if (wait >= 0)
        hfi_field("retry after", "%lld ms", (long long)wait);
    if (web)
        hfi_field("may repeat", "%s", may ? "yes" : "no");
}

static void print_machine(const struct hf_outcome *outcome, enum hf_sent sent, bool may) {
    json_t *object = json_object();
    hfi_json_text(object, "outcome", hf_outcome_kind_name(hf_outcome_get_kind(outcome)));
    hfi_json_text(object, "class", hf_class_name(hf_outcome_get_class(outcome)));
    hfi_json_text(object, "retry", hf_retry_name(hf_outcome_get_retry(outcome)));
    hfi_json_text(object, "breaker", hf_verdict_name(hf_outcome_get_verdict(outcome)));
    hfi_json_text(object, "rule", hf_outcome_get_rule(outcome));
    hfi_json_text(object, "error_type", hf_outcome_get_error_type(outcome));
    hfi_json_text(object, "message", hf_outcome_get_message(outcome));
    hfi_json_text(object, "stage", hf_stage_name(hf_outcome_get_stage(outcome)));
    hfi_json_text(object, "sent", hf_sent_name(sent));
    if (hf_outcome_get_retry_after_ms(outcome) >= 0)
        hfi_json_number(object, "retry_after_ms", hf_outcome_get_retry_after_ms(outcome));
    else
        json_object_set_new(object, "retry_after_ms", json_null());
    hfi_json_flag(object, "may_repeat", may);
    hfi_print_json(object);
}

/* The row behind it; of a chain, the one of the error that decided. */
static void print_reason(const struct hfi_options *options, const struct asked *asked, const struct hf_outcome *outcome) {
    char table[16], subject[64];
    const char *given = options->arguments[1];
    hfi_word_of(FORMS, (int)asked->form, table, sizeof table);
    snprintf(subject, sizeof subject, "%.40s", given);
    if (asked->count > 1 && asked->form == SQLSTATE)
        snprintf(subject, sizeof subject, "%.5s", hf_outcome_get_error_type(outcome) + strlen("sql."));
    else if (asked->count > 1)
        snprintf(subject, sizeof subject, "%d", hf_outcome_get_native(outcome));
    else if (asked->form == HTTP && (asked->numbers[0] == 429 || asked->numbers[0] == 503))
        snprintf(subject, sizeof subject, "%.3s with%s Retry-After", given, hf_outcome_get_retry_after_ms(outcome) < 0 ? "out" : "");
    if (asked->count > 1)
        hfi_field("chain", "%zu errors; %s decides: any transient match wins, then any permanent one", asked->count, subject);
    hfi_classify_reason(table, subject, outcome);
}

static int run(const struct hfi_options *options) {
    struct asked asked = {0};
    const struct hfi_value *flag = hfi_flag(options, "sent");
    if (hfi_flag(options, "table")->given) {
        if (options->argument_count > 0)
            return hfi_usage("classify", NULL, "--table and `%s` exclude each other", options->arguments[0]);
        return hfi_classify_tables(hfi_flag_text(options, "table", NULL));
    }
    if (options->argument_count == 0)
        return hfi_usage("classify", "see holdfast help classify", "it needs a form and what it gave, or --table");
    int code = read_asked(options, &asked);
    if (code != 0)
        return code;
    struct hf_outcome *outcome = hf_outcome_new();
    if (!outcome)
        return hfi_usage("classify", NULL, "out of memory");
    judge(options, &asked, outcome);
    enum hf_sent sent = flag->given ? (enum hf_sent)flag->number : hf_outcome_get_sent(outcome);
    bool may = hf_may_repeat(hfi_flag_text(options, "method", "GET"), hfi_flag(options, "key")->given, sent);
    if (hfi_manner()->json)
        print_machine(outcome, sent, may);
    else
        print_people(outcome, &asked, sent, may, hfi_flag(options, "explain")->given);
    if (!hfi_manner()->json && hfi_flag(options, "explain")->given)
        print_reason(options, &asked, outcome);
    hf_outcome_free(outcome);
    return HFI_EXIT_OK;
}

const struct hfi_command hfi_command_classify = {
    .name = "classify",
    .arguments = "http STATUS | curl CODE | errno NAME | sqlite CODE | sqlstate CODE... | mssql N... | mysql N... | smtp N | exit N | signal NAME",
    .summary = "Prints the verdicts on a failure and the rule that decides",
    .about = "Three verdicts: for retries within a call, for the breaker, and the class for the job. Of several errors of\n"
             "a chain (sqlstate, mssql, mysql) any transient one wins. --method, --sent and --key say whether the request may be repeated.",
    .example = "holdfast classify http 503 --retry-after 120\nholdfast classify curl 56 --method POST --explain\nholdfast classify --table",
    .flags = flags,
    .min_arguments = 0,
    .max_arguments = 33,
    .prints_json = true,
    .run = run,
};
