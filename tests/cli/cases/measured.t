# What attempts took, and what is proposed from it: nothing measured, too few, short retries counted, names and shares that are wrong.
file holdfast.yaml
store: sqlite:jobs.db
downstreams:
  payments: {url: "http://127.0.0.1:1", retry: {max: 2, base: 1ms, cap: 1ms}}
  idle: {url: "http://127.0.0.1:1"}
jobs:
  charge: {kind: http, downstream: payments, method: POST, path: /, repeatable: true, max_executions: 1}
end
$ holdfast ladder show payments
! holdfast: DIR/jobs.db: there is no store (`holdfast run` or `enqueue` makes one)
[3]
$ holdfast enqueue charge
1
$ holdfast --quiet run --until-idle 2>/dev/null

# Three attempts of one execution: the first try, and two short retries.
$ holdfast ladder show payments --window day
downstream         payments
window             the last day, 1 hour of it with attempts
attempts           0 answered, 3 failed by themselves, 0 cut

~ PHASE +ENDED +CUT +P50 +P95 +P99 +P99.9
~ resolve +3 +0 .*
...
attempt
...
  ---------------------- | attempt_timeout 20s

LIMIT              NOW  CUT  OF ALL  A LITTLE LATER (1.5 x) HAD ANSWERED
connect_timeout     5s    0     0 %  -
attempt_timeout    20s    0     0 %  -
total_timeout    1m30s    0     0 %  -
$ holdfast ladder show payments --json | grep -c '"phase":"attempt","p50_us":null,"p95_us":null,"p99_us":null,"p999_us":null,"ended":0,"failed":3,'
1
$ holdfast ladder suggest payments --keep 99 --check
to keep 99 % of what would answer, at 0.000833 attempts a second:
LIMIT                 NOW  PROPOSED  WHY
connect_timeout        5s        5s  kept: 0 samples, 299 are needed
attempt_timeout       20s       20s  kept: 0 samples, 299 are needed
total_timeout       1m30s     1m30s  kept: 0 samples, 299 are needed
breaker.window         1m        1m  kept: 0 samples, 299 are needed
breaker.slow_after    0ms       0ms  kept: 0 samples, 299 are needed

downstreams:
  payments:
    connect_timeout: 5s
    attempt_timeout: 20s
    total_timeout: 90s
    breaker: {window: 1m}

checked by the rules of `holdfast check`: 0 errors
$ holdfast ladder suggest payments --json | grep -o '"limit":"attempt_timeout","basis":"too_few","now_ms":20000,"proposed_ms":20000,"samples":0,"needed":2995'
"limit":"attempt_timeout","basis":"too_few","now_ms":20000,"proposed_ms":20000,"samples":0,"needed":2995

# The proof is that of the whole configuration: a job type that the ladder does not fit.
$ sed 's/max_executions: 1/max_executions: 1, execution_timeout: 1m/' holdfast.yaml > short.yaml
$ holdfast --config short.yaml ladder suggest payments --check | tail -2
~ E .*execution_timeout.*
checked by the rules of `holdfast check`: 1 error

$ holdfast ladder show idle
! holdfast: downstream idle: the store has no attempts of it within the last week (let jobs call it: a node writes what their attempts took once a minute and when it drains)
[3]
$ holdfast ladder suggest payment
! holdfast: downstream payment: neither the configuration nor the store knows it (did you mean `payments`?)
[3]
$ holdfast ladder suggest payments --keep 100
! holdfast: keep: `100` is none (a percentage above 0 and below 100, as 99.9)
[2]
$ holdfast ladder suggest payments --keep nan
! holdfast: keep: `nan` is none (a percentage above 0 and below 100, as 99.9)
[2]
$ holdfast ladder show payments --window year
! holdfast: window: `year` is none of hour|day|week
[2]
