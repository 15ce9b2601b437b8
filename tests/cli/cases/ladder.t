# The proof of the ladder (2.7): each fault with file:line, the numbers and a fix.
file holdfast.yaml
node: {lease: 30s, heartbeat: 15s}
downstreams:
  d:
    url: http://d.example
    connect_timeout: 30s
    attempt_timeout: 20s
    total_timeout: 90s
    breaker: {window: 30s}
    retry: {max: 3, base: 8s, cap: 6s}
jobs:
  slow: {kind: http, downstream: d, execution_timeout: 60s}
end
$ holdfast check
~ E holdfast.yaml:5:22: downstreams.d.connect_timeout: .* \[ladder.order\]
~ E holdfast.yaml:9:\d+: downstreams.d.retry.base: .* \[retry.base\]
~ E holdfast.yaml:9:\d+: downstreams.d.retry.cap: .* \[retry.cap\]
...
~ E holdfast.yaml:8:23: downstreams.d.breaker.window: .* \[breaker.window\]
~ E holdfast.yaml:11:\d+: jobs.slow.execution_timeout: .*
E holdfast.yaml:1:15: node.lease: lease 30s < 3 x heartbeat 15s = 45s: two late beats would lose every job (raise lease to 45s, or lower heartbeat) [node.lease]
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
~ slow      default  d                    6              4                24 .*
~ holdfast.yaml: \d errors, 0 warnings
[2]

# V13: nothing is guessed and nothing wraps.
$ printf 'downstreams: {d: {url: http://d, total_timeout: 9999999999999999999h}}\n' > o.yaml; holdfast check --config o.yaml
~ E o.yaml:1:\d+: downstreams.d.total_timeout: `9999999999999999999h` overflows .* \[config.overflow\]
o.yaml: 1 error, 0 warnings
[2]

# The drain has to end before the supervisor kills [S3.4].
$ printf 'node: {drain_timeout: 25s, kill_timeout: 25s}\n' > k.yaml; holdfast check --config k.yaml
E k.yaml:1:23: node.drain_timeout: a drain of 25s, but the supervisor kills after 25s (lower drain_timeout, or raise the supervisor's limit) [node.drain]
k.yaml: 1 error, 0 warnings
[2]
$ printf 'node: {kill_timeout: 30s}\n' > k.yaml; holdfast check --config k.yaml
W k.yaml:1:7: node.drain_timeout: a drain of 25s and the 6s that told handlers have make 31s, but the supervisor kills after 30s (lower drain_timeout, or raise the supervisor's limit) [node.drain]
k.yaml: 0 errors, 1 warning
$ printf 'node: {kill_timeout: 31s}\n' > k.yaml; holdfast check --config k.yaml
k.yaml: 0 errors, 0 warnings

# The worst case of all layers is bounded (V12), how soon a breaker can open is told (W12), what can never trip too (V6, V14).
file w.yaml
defaults: {max_calls_per_job: 23}
downstreams:
  slow:
    url: http://d.example
    declared_rate: 0.2/s
    breaker: {consecutive: 5, slow_ratio: 0.5, slow_after: 20s}
jobs:
  push: {kind: http, downstream: slow}
end
$ holdfast check --config w.yaml
~ W w.yaml:6:\d+: downstreams.slow.breaker.min_calls: .* \[breaker.min_calls\]
~ W w.yaml:6:\d+: downstreams.slow.breaker.slow_after: .*: none is ever slow .* \[breaker.slow_after\]
~ E w.yaml:1:31: defaults.max_calls_per_job, job push: 6 executions of 4 attempts make 24 real calls for one job, 23 are allowed .* \[ladder.calls\]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER               BREAKS
slow               4         1m23s           none  5 failures, 20s at 0.2/s  5s to 1m
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
push      default  slow                 6              4                24          4h45m
w.yaml: 1 error, 2 warnings
[2]

# V12: each hop of a redirect is a request of its own, of a call that must not be repeated as well.
file hops.yaml
downstreams:
  hops: {url: http://d.example, redirects: {max: 5}}
jobs:
  push: {kind: http, downstream: hops}
  once: {kind: http, downstream: hops, repeatable: false}
end
$ holdfast check --config hops.yaml
~ E hops.yaml:4:3: defaults.max_calls_per_job, job push: 6 executions of 4 attempts, each of 6 requests with its redirects, make 144 real calls for one job, 100 are allowed .* \[ladder.calls\]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER  BREAKS
~ hops               4 .*
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
push      default  hops                 6              4               144          4h45m
once      default  hops                 6              1                 6          4h45m
hops.yaml: 1 error, 0 warnings
[2]

# V8: no Retry-After moves a job further than its own curve: where the cap says more, it is clamped, and this is told.
file clamp.yaml
downstreams:
  d: {url: "https://d.example", retry_after: {cap: 1h}}
jobs: {push: {kind: http, downstream: d, curve: [10s, 30s]}, mail: {kind: http, downstream: d, curve: [10s, 1h]}}
end
$ holdfast check --config clamp.yaml
~ W clamp.yaml:2:.*: downstreams.d.retry_after.cap, job push: a Retry-After may move a job by 1h, the curve's last wait is 30s: it is clamped to 30s \(lower it to the curve's last wait, or add a longer wait to the curve\) \[ladder.retry_after\]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER  BREAKS
d                  4         1m23s           none  20 failures  5s to 1m
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
push      default  d                    3              4                12          5m10s
mail      default  d                    3              4                12           1h4m
clamp.yaml: 0 errors, 1 warning
