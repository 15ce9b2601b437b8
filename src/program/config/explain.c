/* SPDX-License-Identifier: MIT */
/* Tells every key of the schema: as text for `holdfast check --explain` and as holdfast.yaml(5). The main thread's. */
#include <string.h>

#include "holdfast/version.h"
#include "program/config/config.h"
#include "program/config/schema.h"

void hfi_config_explain(FILE *to) {
    char type[160], doc[HFI_KEY_DOC];
    for (size_t i = 0; i < hfi_key_count; i++) {
        const struct hfi_key *key = &hfi_keys[i];
        fprintf(to, "%s\n    %s", key->path, hfi_key_describe(key, type));
        if (key->traits & HFI_KEY_REQUIRED)
            fputs(", required", to);
        if (key->preset)
            fprintf(to, ", default %s", *key->preset ? key->preset : "\"\"");
        fprintf(to, "\n    %s\n", hfi_key_doc(key, doc));
    }
}

static void roff(FILE *to, const char *text) {
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
    }
}

static void man_key(FILE *to, const struct hfi_key *key) {
    char type[160], doc[HFI_KEY_DOC];
    fputs(".TP\n.B \"", to);
    roff(to, key->path);
    fputs("\"\n", to);
    roff(to, hfi_key_describe(key, type));
    if (key->traits & HFI_KEY_REQUIRED)
        fputs(", required", to);
    if (key->preset) {
        fputs(", default ", to);
        roff(to, *key->preset ? key->preset : "\"\"");
    }
    fputs(".\n.br\n", to);
    roff(to, hfi_key_doc(key, doc));
    fputs(".\n", to);
}

void hfi_config_man(FILE *to) {
    fputs(".\\\" Made by `holdfast check --man` from the table of keys; do not edit.\n"
          ".TH HOLDFAST.YAML 5 \"\" \"holdfast " HF_VERSION_TEXT "\" \"File Formats\"\n"
          ".SH NAME\nholdfast.yaml \\- configuration of holdfast\n"
          ".SH DESCRIPTION\n"
          "One YAML document, read strictly: every value has the type of its key (`on', `no' and `1e3' are texts), and\n"
          "anchors, aliases, tags, duplicate and unknown keys are errors with file:line:column. A duration is a whole\n"
          "number with a unit: 250ms, 5s, 2m, 1h, 7d. A size is 512B, 64KiB, 1MiB or 1GiB. A rate is 10/s, 600/m or\n"
          "36000/h. Secrets may refer to the environment as ${NAME} (with $${ for a plain ${) or to a file as file:PATH,\n"
          "beside this one if not absolute; a variable that is not set is an error.\n"
          ".PP\nA star stands for a name of your choice. A list of maps names the section that holds the keys of its items:\n"
          "with the keys of `rule' means name, status and so on of\n.BR rule.name ,\n.BR rule.status .\nCheck a file with\n.BR \"holdfast check\" .\n"
          ".SH KEYS\n",
          to);
    for (size_t i = 0; i < hfi_key_count; i++)
        man_key(to, &hfi_keys[i]);
    fputs(".SH EXAMPLE\n.nf\n"
          "store: sqlite:/var/lib/holdfast/jobs.db\n"
          "downstreams:\n"
          "  payments:\n"
          "    url: https://payments.example\n"
          "    headers: {authorization: \"${PAYMENTS_TOKEN}\"}\n"
          "jobs:\n"
          "  charge: {kind: http, downstream: payments, path: /charges, execution_timeout: 3m}\n"
          ".fi\n"
          ".SH SEE ALSO\n.BR holdfast (1)\n",
          to);
}
