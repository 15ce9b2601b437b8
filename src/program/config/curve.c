/* SPDX-License-Identifier: MIT */
/*
 * The keys that say how often and when a job is executed again: `curve` as a list or a formula, `max_executions` or
 * `retries`. Must never let a formula's part stand without its base [S2.4]. Pure.
 */
#include <string.h>

#include "program/config/bind.h"

static void from_list(struct hfi_binding *binding, const struct hfi_node *node, struct hf_curve_options *options) {
    static const struct hfi_key wait = {.type = HFI_KEY_DURATION, .max = 36500.0 * 86400000.0};
    struct hfi_waits waits = {0};
    size_t errors = binding->problems->errors;
    hfi_bind_waits(binding, &wait, node, &waits);
    if (binding->problems->errors > errors)
        return;
    if (waits.count == 0)
        hfi_bind_error(binding, "config.curve", node, "write [60s], or `retries: 0` for none", "a curve has at least one wait");
    else if (waits.count > HF_CURVE_MAX)
        hfi_bind_error(binding, "config.curve", node, "the last one is used again and again", "%zu waits, %d at most", waits.count,
                       HF_CURVE_MAX);
    else
        memcpy(options->curve_ms, waits.items, waits.count * sizeof *waits.items);
    options->curve_length = waits.count > HF_CURVE_MAX ? 0 : (uint32_t)waits.count;
}

static bool has(const struct hfi_node *node, const char *key) {
    return hfi_tree_child(node, key) != NULL;
}

static void from_form(struct hfi_binding *binding, const struct hfi_node *node, struct hf_curve_options *options) {
    struct hfi_curve_form form = {0};
    size_t errors = binding->problems->errors;
    bool base = has(node, "base"), poly = has(node, "poly");
    hfi_bind_presets("curve", &form);
    hfi_bind_map(binding, node, "curve", &form);
    if (base == poly)
        hfi_bind_error(binding, "config.curve", node, "write {base: 2s, factor: 2, cap: 5m} or {poly: 4, plus: 15s}",
                       base ? "it has `base` and `poly`" : "it has neither `base` nor `poly`");
    else if (!base && (has(node, "factor") || has(node, "cap")))
        hfi_bind_error(binding, "config.curve", node, "add base, or leave them out", "`factor` and `cap` belong to `base`");
    else if (!poly && has(node, "plus"))
        hfi_bind_error(binding, "config.curve", node, "add poly, or leave it out", "`plus` belongs to `poly`");
    else if (base && form.cap_ms > 0 && form.cap_ms < form.base_ms)
        hfi_bind_error(binding, "config.curve", node, "raise cap", "`cap` is below `base`");
    if (binding->problems->errors > errors)
        return;
    int code = base ? hf_curve_exponential(options, form.base_ms, form.factor, form.cap_ms)
                    : hf_curve_polynomial(options, form.power, form.plus_ms, form.jitter);
    options->jitter = form.jitter;
    if (code != 0)
        hfi_bind_error(binding, "config.curve", node, "base is 1ms or more, factor 1 to 1000, poly 1 to 8, jitter 0 to 1",
                       "no waits can be worked out of it: %s", hf_strerror(code));
}

void hfi_bind_curve(struct hfi_binding *binding, const struct hfi_node *node, struct hfi_curve_setting *setting) {
    hf_curve_options_init(&setting->options);
    setting->given = true;
    if (node->kind == HFI_NODE_SCALAR)
        hfi_bind_error(binding, "config.type", node, "write [60s, 5m] or {base: 2s, factor: 2, cap: 5m}",
                       "it has to be a list of waits or a map");
    else if (node->kind == HFI_NODE_LIST)
        from_list(binding, node, &setting->options);
    else
        from_form(binding, node, &setting->options);
}

void hfi_bind_executions(struct hfi_binding *binding, const struct hfi_node *level, struct hfi_curve_setting *setting) {
    if (!setting->given)
        hf_curve_options_init(&setting->options);
    if (setting->executions > 0 && setting->retries >= 0) {
        hfi_bind_error(binding, "config.curve", level, "keep one of them", "`max_executions` and `retries` are both given");
        return;
    }
    if (setting->retries >= 0)
        setting->executions = (uint32_t)setting->retries + 1;
    setting->options.max_executions = setting->executions;
}
