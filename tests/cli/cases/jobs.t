# Enqueue, list, show, cancel, pause, isolate: a store without a node (S3.23: enqueuing needs none).
$ holdfast job list
! holdfast: DIR/holdfast.db: there is no store (`holdfast run` or `enqueue` makes one)
[3]
$ holdfast enqueue charge '{"order":1}' --json
{"id":1,"existed":false}
$ ls holdfast.db
holdfast.db

file holdfast.yaml
store: sqlite:jobs.db
downstreams:
  pay: {url: "http://127.0.0.1:9"}
queues:
  reports: {order: 3, max_executions: 2}
jobs:
  charge: {kind: http, downstream: pay, path: /c, curve: [1s, 2s], execution_timeout: 3m}
  nop: {kind: noop, queue: reports}
end
$ holdfast migrate --json
{"kind":"sqlite","path":"DIR/jobs.db","uuid":"UUID","schema":1,"min_reader":1,"min_writer":1,"migrated":false}
$ holdfast enqueue charge '{"order":1}' --correlation o-1 --priority 7 --tags a,b --content-type application/json
1
$ printf '\001\377' | holdfast enqueue nop -
2
$ holdfast enqueue nop --unique k --in 1h
3
$ holdfast enqueue nop --unique k --json
{"id":3,"existed":true}
$ printf 'from a file' > f; holdfast enqueue nop --file f --max-executions 1 --curve '1s, 2m' --idempotency-key my-key
4

$ holdfast job show 3 | grep state
state              scheduled
$ holdfast job list --limit-key tenant
! holdfast: limit-key: `tenant` is not NAME:KEY (write tenant:42, as in enqueue --limit)
[2]
$ holdfast job list --tag a,b
! holdfast: tag: `a,b` is no single tag (give one word)
[2]

$ holdfast enqueue chrage --in 1h
5
! holdfast: warning: the configuration has no job type `chrage` (did you mean `charge`?)

# What the configuration says about a type is fixed with the job.
$ holdfast job show 1
job                1
state              ready
type               charge
queue              default, priority 7
downstream         pay
executions         0 of 3
failures           0, crashes 0, given back 0, deaths 0
key                UUID-1
correlation id     o-1
tags               a,b
created at         TIME
run at             TIME
payload            11 bytes, application/json
payload            {"order":1}
$ holdfast job show 2 --json
~ \{"id":2,"state":"pending","shown":"ready","type":"nop","queue":"reports","downstream":null,.*"idempotency_key":"UUID-2",.*"max_executions":2,.*"payload_bytes":2,"payload_base64":"Af8=",.*"parents":\[\],"children":\[\],"child_count":0,"history":\[\]\}
$ holdfast job show 4 --json
~ .*"idempotency_key":"my-key",.*"max_executions":1,"max_executions_explicit":true,.*"payload":"from a file".*
$ holdfast job list --queue reports --limit 2
ID  STATE      TYPE  QUEUE    EXECUTIONS  RUN AT                       ERROR
~  4  ready      nop   reports           0  TIME  -
~  3  scheduled  nop   reports           0  TIME  -
more: --after 3
$ holdfast job list --queue reports --limit 2 --after 3 --json
~ \{"items":\[\{"id":2,.*\}\],"next":null\}
$ holdfast job list --state dead --json
{"items":[],"next":null}
$ holdfast job cancel 4 --reason 'ordered twice' --actor ada
job 4 cancelled
$ holdfast job show 4 --json
~ .*"state":"cancelled".*"cancel_reason":"[^"]*ordered twice[^"]*".*

# Ids that do not exist, that are none, and states that refuse.
$ holdfast job show 99
! holdfast: job: 99 does not exist
[3]
$ holdfast job show x
! holdfast: job: `x` is not an id (an id is a number from 1)
[2]
$ holdfast job cancel 99
! holdfast: job: 99 does not exist (`holdfast job list` shows what is there)
[3]
$ holdfast job cancel 4
! holdfast: job: 4 is cancelled (only jobs that have not ended can be cancelled)
[4]
$ holdfast job requeue 1 --actor ada
! holdfast: job: 1 is pending (only dead and quarantined jobs can be requeued)
[4]
$ holdfast job requeue 1
! holdfast: job requeue: --actor A is required
[2]
$ holdfast dead show 1
! holdfast: dead letter: 1 does not exist
[3]
$ holdfast dead redrive 1 --actor ada
! holdfast: dead letter: 1 does not exist (`holdfast dead list` shows what is there)
[3]
$ holdfast dead resolve 1
! holdfast: dead letter: 1 does not exist (`holdfast dead list` shows what is there)
[3]
$ holdfast dead redrive --actor ada
! holdfast: dead redrive: nothing says which ones (name ids, a filter, or --all)
[2]
$ holdfast dead redrive 1 --actor ada --payload x
! holdfast: dead redrive: another payload is another request: the old key would get the old answer (add --new-key)
[2]
$ holdfast dead redrive 1
! holdfast: dead redrive: --actor A is required
[2]
$ holdfast dead list
ID  STATUS  JOB  TYPE  CLASS  ERROR  EXECUTIONS  DEAD AT
$ holdfast dead list --json
{"items":[],"next":null}

# Queues and downstreams.
$ holdfast queue pause reports --until 2000-01-01T00:00:00Z
! holdfast: until: it is over (name a time to come)
[2]
$ holdfast queue pause reports --until 2990-01-01T00:00:00Z
queue reports paused until TIME
$ holdfast queue list --json
~ \{"items":\[\{"name":"default","paused":false,"paused_until":null,"due":1,.*\{"name":"reports","paused":true,"paused_until":"TIME","due":1,"scheduled":1,"running":0,"oldest_due_at":"TIME","concurrency":null,"global_concurrency":null\}\],"limits":\[\],"next":null\}
$ holdfast queue resume reports
queue reports resumed
$ holdfast queue resume reports
! holdfast: queue: "reports" is not paused (`holdfast queue list` shows what is paused)
[3]
$ holdfast downstream show pay
downstream         pay
url                http://127.0.0.1:9
state              closed: no node has written anything about it: calls pass
parked             0 jobs
trips              0
limits             connect 5s, attempt 20s, total 1m30s
retries            3, exponential from 500ms up to 5s, jitter full; of all calls of 10s 20 %, or 10
hedges             none
opens at           50 % failed of at least 20 attempts in 1m
breaks             5s to 1m, then 3 probes (0 may fail) and a ramp of 10s
at once            64 attempts, 0 calls may wait
rate               no limit
retry after        a job waits up to 1h, everybody up to 1m
jobs               parked while it is open; one kept back for 1d is dead
$ holdfast downstream isolate pay
! holdfast: downstream isolate: --reason R is required
[2]
$ holdfast downstream isolate pay --reason 'ticket 4711' --for 1h
downstream pay isolated: every node keeps away within a poll
$ holdfast downstream show pay
downstream         pay
url                http://127.0.0.1:9
state              isolated: isolated by hand until TIME: nothing is called
reason             ticket 4711
next probe         none while it is isolated
~ parked             \d jobs
trips              0
limits             connect 5s, attempt 20s, total 1m30s
retries            3, exponential from 500ms up to 5s, jitter full; of all calls of 10s 20 %, or 10
hedges             none
opens at           50 % failed of at least 20 attempts in 1m
breaks             5s to 1m, then 3 probes (0 may fail) and a ramp of 10s
at once            64 attempts, 0 calls may wait
rate               no limit
retry after        a job waits up to 1h, everybody up to 1m
jobs               parked while it is open; one kept back for 1d is dead
$ holdfast downstream close pay
downstream pay closed: calls pass again
$ holdfast downstream show pya
! holdfast: downstream pya: neither the configuration nor the store knows it (did you mean `pay`?)
[3]
$ holdfast doctor
~ store sqlite DIR/jobs.db, schema \d
...
~ 0 errors, \d warnings?

# A breaker that opened: the state, why, and when it is tested next, from the store alone.
file open.yaml
store: sqlite:open.db
downstreams:
  pay:
    url: http://127.0.0.1:9
    retry: {max: 0}
    breaker: {min_calls: 1, break: 10m, max_break: 10m, break_jitter: 0, consecutive: 3}
    on_open: fail
    probe: {path: /healthz}
jobs:
  charge: {kind: http, downstream: pay}
end
$ holdfast --config open.yaml enqueue charge
1
$ holdfast --config open.yaml --quiet run --until-idle
$ holdfast --config open.yaml downstream show pay
downstream         pay
url                http://127.0.0.1:9
~ state              open: the breaker opened \(trip 1, unhealthy since TIME\): nothing is called until TIME, then probes test it
~ reason             ratio.*
~ next probe         TIME, in 9m\d+s, by a GET of /healthz
~ parked             \d jobs
trips              1
~ resolve            p50 .* ms, p95 .* ms, p99 .* ms of 1
~ whole attempt      p50 .* ms of 1
limits             connect 5s, attempt 20s, total 1m30s
retries            none
hedges             none
opens at           50 % failed of at least 1 attempts in 1m, 3 failures in a row
breaks             10m to 10m, then 3 probes (0 may fail) and a ramp of 10s
at once            64 attempts, 0 calls may wait
rate               no limit
retry after        a job waits up to 1h, everybody up to 1m
jobs               fail along their curve while it is open; one kept back for 1d is dead
$ holdfast --config open.yaml downstream show pay --json
~ \{"name":"pay","state":"open",.*"next_probe_at":"TIME",.*"next_probe":"TIME, in 9m.*,"phases":\{"resolve":.*"total":\{"count":1,.*\}\},"limits":\{"connect_timeout_ms":5000,.*\}\}

# All that a policy says is shown, for people and as JSON.
file full.yaml
store: sqlite:full.db
downstreams:
  pay:
    url: http://127.0.0.1:9
    connect_timeout: 1s
    attempt_timeout: 2s
    total_timeout: 40s
    retry: {max: 3, table: [1s, 2s, 4s], jitter: factor, jitter_factor: 0.25}
    budget: {ratio: 0.1, floor: 3, window: 20s}
    hedge: {max: 2, delay: 700ms}
    retry_after: {cap: 10m, scope: call}
    breaker: {window: 30s, slices: 10, consecutive: 9, slow_ratio: 0.8, slow_after: 1s, probes: 2, tolerated: 1, ramp: 5s}
    bulkhead: {max: 8, queue: 4}
    rate: {limit: 50/s, burst: 7}
    on_open: fail
    give_up_after: 2h
  tail: {url: "http://127.0.0.1:9", hedge: {max: 1, delay: p95}, rate: {limit: 50/s}}
end
$ holdfast --config full.yaml migrate --quiet
$ holdfast --config full.yaml downstream show pay
downstream         pay
url                http://127.0.0.1:9
...
limits             connect 1s, attempt 2s, total 40s
retries            3, table 1s, 2s, 4s, jitter factor; of all calls of 20s 10 %, or 3
hedges             2 beside each try, after 700ms
opens at           50 % failed of at least 20 attempts in 30s, 9 failures in a row, 80 % slower than 1s
breaks             5s to 1m, then 2 probes (1 may fail) and a ramp of 5s
at once            8 attempts, 4 calls may wait
rate               50/s, a burst of 7
retry after        a job waits up to 10m, nobody else does
jobs               fail along their curve while it is open; one kept back for 2h is dead
$ holdfast --config full.yaml downstream show tail
...
hedges             1 beside each try, after its p95, until known 2s
...
rate               50/s, a burst of a tenth of a second's worth
...
$ holdfast --config full.yaml downstream show pay --json
~ .*"limits":\{"connect_timeout_ms":1000,"attempt_timeout_ms":2000,"total_timeout_ms":40000,"allow_truncated":false,"retry_max":3,"retry_backoff":"table",.*"retry_table_ms":\[1000,2000,4000\],"retry_jitter":"factor","retry_jitter_factor":0.25,"budget_ratio":0.1.*,"budget_floor":3,"budget_window_ms":20000,"hedge_max":2,"hedge_delay_ms":700,"hedge_p95":false,"retry_after_cap_ms":600000,"gate_cap_ms":60000,"gate_scope":"call","breaker_window_ms":30000,"breaker_slices":10,"breaker_ratio":0.5,"breaker_min_calls":20,"breaker_consecutive":9,"breaker_slow_ratio":0.8.*,"breaker_slow_after_ms":1000,.*"breaker_probes":2,"breaker_tolerated":1,"breaker_ramp_ms":5000,"breaker_lease_ms":12000,"breaker_429_failure":false,"bulkhead_max":8,"bulkhead_queue":4,"rate_per_s":50.*,"rate_burst":7,"on_open":"fail","give_up_after_ms":7200000,"declared_rate":0.*,"latency":"exact","allow_fault_injection":false\}\}
