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
