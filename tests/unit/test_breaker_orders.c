/* SPDX-License-Identifier: MIT */
/*
 * Every order in which two reporters and an acquirer can come through the breaker's lock, from each state it can be in
 * and with the break's end between any two steps: state and `until` agree after every step, and it always recovers (B13).
 */
#include "breaker_rig.h"

enum { A, B, C, ACTORS, STEPS = 5 }; /* A and B enter and report, C only enters: its permit is lost */
static const enum hf_verdict verdicts[] = {HF_VERDICT_SUCCESS, HF_VERDICT_FAILURE, HF_VERDICT_NEUTRAL};
static const char *const starts[] = {"closed, one failure short", "open", "half open, one probe short", "ramp"};
enum { STARTS = sizeof starts / sizeof *starts, NEVER = STEPS };

/* What a reader sees at any moment. */
static void agree(const char *where) {
    struct hfi_breaker_look l = look();
    bool sound = true;
    switch (l.state) {
    case HF_BREAKER_OPEN: /* it ends, and not later than the longest break with its jitter */
        sound = l.until_us > START && l.until_us - clock_us <= 66 * S && (l.allowance == 0 || l.until_us <= clock_us);
        break;
    case HF_BREAKER_HALF_OPEN:
        sound = l.until_us <= clock_us && l.probes_in_flight <= 3;
        break;
    case HF_BREAKER_CLOSED:
        sound = l.allowance > 0;
        break;
    case HF_BREAKER_RAMP: /* as many as it lets come back may be on their way */
        break;
    default:
        sound = false;
    }
    const struct hfi_breaker_event *last = seen.count > 0 ? &seen.list[seen.count - 1] : NULL;
    if (last != NULL && last->to == l.state && l.state == HF_BREAKER_OPEN)
        sound = sound && last->until_us == l.until_us && last->until_us > last->at_us;
    for (int i = 1; i < seen.count; i++)
        sound = sound && seen.list[i].from == seen.list[i - 1].to;
    if (!sound)
        fail_msg("%s: %s, until %+lld ms, %u allowed", where, hf_breaker_state_name(l.state),
                 (long long)(l.until_us - clock_us) / 1000, l.allowance);
}

static void begin(int from) {
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 3;
    rules.ramp_cap = 4;
    start_with(&rules);
    if (from == 0) {
        calls(2, HF_VERDICT_FAILURE);
        return;
    }
    calls(3, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    if (from == 1)
        return;
    pass_break();
    calls(from == 2 ? 2 : 3, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, from == 2 ? HF_BREAKER_HALF_OPEN : HF_BREAKER_RAMP);
}

/* One step of one actor: in, or out if it is in. */
static void step(int actor, struct hf_permit *permits, int *entered, const enum hf_verdict *report) {
    int64_t wait = 0;
    if (entered[actor] == 0)
        entered[actor] = hfi_breaker_enter(&b, now(), &permits[actor], &wait) == HFI_ADMITTED ? 1 : 2;
    else if (entered[actor] == 1)
        leave(&permits[actor], report[actor]);
}

static void run(int from, const int *order, int jump, const enum hf_verdict *report) {
    struct hf_permit permits[ACTORS];
    int entered[ACTORS] = {0};
    char where[120];
    begin(from);
    for (int i = 0; i < STEPS; i++) {
        if (i == jump)
            clock_us += 6 * S; /* beyond the first break */
        step(order[i], permits, entered, report);
        snprintf(where, sizeof where, "%s, order %d%d%d%d%d, jump %d, verdicts %d %d, step %d", starts[from], order[0], order[1],
                 order[2], order[3], order[4], jump, report[A], report[B], i);
        agree(where);
    }
    int64_t wait = 0;
    bool recovered = false;
    for (int i = 0; i < 3 && !recovered; i++) { /* a lost probe fails when its lease is over; then comes a break */
        clock_us += 100 * S;
        recovered = hfi_breaker_enter(&b, now(), &permits[C], &wait) == HFI_ADMITTED;
        agree(where);
    }
    if (!recovered)
        fail_msg("%s: it never recovers", where);
}

static void b13_all_orders_of_two_reporters_and_an_acquirer(void **state) {
    (void)state;
    long runs = 0;
    for (int code = 0; code < 3 * 3 * 3 * 3 * 3; code++) { /* all words of five steps; those with A, B twice and C once */
        int order[STEPS], count[ACTORS] = {0};
        for (int i = 0, rest = code; i < STEPS; i++, rest /= 3)
            count[order[i] = rest % 3]++;
        if (count[A] != 2 || count[B] != 2)
            continue;
        for (int from = 0; from < STARTS; from++)
            for (int jump = 0; jump <= NEVER; jump++)
                for (int v = 0; v < 9; v++, runs++)
                    run(from, order, jump, (enum hf_verdict[]){verdicts[v % 3], verdicts[v / 3]});
    }
    assert_int_equal(runs, 30 * STARTS * (STEPS + 1) * 9);
    hfi_breaker_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b13_all_orders_of_two_reporters_and_an_acquirer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
