# Limits by key: what the configuration knows, what enqueue refuses, what the lists and the doctor show.
$ holdfast enqueue send --limit tenant:42
1
file holdfast.yaml
queues:
  reports: {concurrency: 4, global_concurrency: 6, aging: 10m}
limits:
  tenant: {concurrency: 2, rate: 30/m}
  api: {rate: 10/s, burst: 3}
jobs:
  send: {kind: noop, queue: reports}
end
$ holdfast check
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
send      reports  -                    6              0                 0          4h48m
holdfast.yaml: 0 errors, 0 warnings
$ holdfast enqueue send --limit tenant:42
2
$ holdfast enqueue send --limit tenant:43
3
$ holdfast enqueue send --limit tennant:43
! holdfast: limit: `tennant` is not in the configuration: it would not limit (did you mean `tenant`?)
[2]
$ printf '{"type":"send","limit":"api:1"}\n{"type":"send","limit":"colour:red"}\n' | holdfast enqueue --ndjson
! holdfast: stdin:2: limit: `colour` is not in the configuration: it would not limit (add it to limits)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 2
[2]
$ holdfast queue list
QUEUE    DUE  SCHEDULED  RUNNING  OF A NODE  OF ALL  OLDEST DUE                   PAUSED
default    1          0        0          -       -  TIME  no
reports    2          0        0          4       6  TIME  no
LIMIT   KEYS  PENDING  RUNNING  OF A KEY AT ONCE  RATE OF A KEY
tenant     2        3        0                 2  0.5/s
$ holdfast queue list --json
{"items":[{"name":"default","paused":false,"paused_until":null,"due":1,"scheduled":0,"running":0,"oldest_due_at":"TIME","concurrency":null,"global_concurrency":null},{"name":"reports","paused":false,"paused_until":null,"due":2,"scheduled":0,"running":0,"oldest_due_at":"TIME","concurrency":4,"global_concurrency":6}],"limits":[{"name":"tenant","keys":2,"pending":3,"running":0,"known":true,"concurrency":2,"rate_per_second":0.5}],"next":null}

# A name that no configuration here has: said by the doctor and by the list, and it does not limit.
$ printf 'jobs: {send: {kind: noop}}\n' > other.yaml; holdfast --config other.yaml queue list | tail -1
tenant     2        3        0                 -  not in the configuration: not limited
$ holdfast --config other.yaml doctor | grep limit
W limit: 3 jobs have the limit `tenant`, which is not in this configuration: it does not limit (add it to limits, on every node)
$ holdfast doctor | grep -c limit
0
[1]
$ holdfast --quiet run --until-idle
$ holdfast queue list | grep -c LIMIT
0
[1]

# What says nothing, or too much.
file bad.yaml
limits:
  none: {}
  lone: {concurrency: 1, burst: 4}
  "a:b": {concurrency: 1}
  slow: {rate: 1/h, burst: 100000}
queues:
  q: {concurrency: 4, global_concurrency: 3}
end
$ holdfast --config bad.yaml check
E bad.yaml:2:3: limits.none: it limits nothing (give concurrency, a rate, or both) [config.limit]
E bad.yaml:3:3: limits.lone: a burst without a rate (add a rate, or leave it out) [config.limit]
E bad.yaml:4:3: limits.a:b: a colon ends the name of a limit (choose another name) [config.limit]
E bad.yaml:5:3: limits.slow: a burst of 100000 takes more than a year to come back (lower the burst) [config.limit]
W bad.yaml:7:43: queues.q.global_concurrency: a node reserves 4 slots, but 3 jobs run at once in the whole store (lower concurrency, or raise global_concurrency) [queue.concurrency]
bad.yaml: 4 errors, 1 warning
[2]

# 3.4: a job at a per_host downstream waits with the host that its payload names, from the start.
file hosts.yaml
store: sqlite:hosts.db
downstreams: {hooks: {per_host: true}, fixed: {url: "http://127.0.0.1:9"}}
jobs:
  hook: {kind: http, downstream: hooks, url: "{url}"}
  order: {kind: http, downstream: fixed, path: /in}
end
$ holdfast --config hosts.yaml enqueue hook '{"url": "http://Dead.example:80/in?key=1"}'
1
$ printf '{"type":"hook","payload":{"url":"https://a.example/x"}}\n{"type":"hook","payload":{"link":1}}\n{"type":"order"}\n' | holdfast --config hosts.yaml enqueue --ndjson
3 jobs enqueued
$ python3 -c "import sqlite3; print(*[row[0] for row in sqlite3.connect('hosts.db').execute('select breaker_key from lanes order by id')])"
http://dead.example#hooks https://a.example#hooks hooks fixed
