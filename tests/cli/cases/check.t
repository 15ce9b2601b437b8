# The configuration: strict YAML, every complaint with its place, the numbers and a fix.
$ holdfast check
(no configuration file: all defaults): 0 errors, 0 warnings

# The example of the design (without what later issues bring) is accepted, and its truncated ladder is told [S0.31].
file holdfast.yaml
store: sqlite:jobs.db
node: {workers: 8, drain_timeout: 25s, lease: 60s, heartbeat: 15s, poll: 250ms}
defaults: {max_executions: 6, curve: [60s, 5m, 30m, 2h], execution_timeout: 2m, never_retry: [validation]}
downstreams:
  payments:
    url: https://payments.example
    connect_timeout: 5s
    attempt_timeout: 15s
    total_timeout: 50s
    allow_truncated: true
    retry: {max: 3, base: 500ms, factor: 2, jitter: full, cap: 5s}
    breaker: {window: 60s, ratio: 0.5, min_calls: 20, break: 5s, max_break: 60s, probes: 3, ramp: 10s}
    bulkhead: {max: 64, queue: 0}
    on_open: park
    give_up_after: 24h
    retry_after: {cap: 1h, gate_cap: 60s}
    probe: {path: /healthz}
    headers: {authorization: "${PAYMENTS_TOKEN}"}
queues:
  critical: {order: 1, concurrency: 16}
  default:  {order: 2, concurrency: 8, curve: [5s, 5m, 5h], max_executions: 4}
  reports:  {order: 3, concurrency: 2}
jobs:
  charge:  {kind: http, downstream: payments, method: POST, path: /charges, repeatable: false}
  invoice: {kind: exec, command: [/usr/local/bin/render-invoice], queue: reports, execution_timeout: 5m}
retention: {succeeded: 7d, cancelled: 7d, dead: 30d, quarantined: 30d, dead_letters: 90d, inbox: 30d}
alerts:
  pager: {webhook: {url: "file:hook"}}
end
file hook
https://hooks.example/1
end
$ holdfast check
E holdfast.yaml:18:30: downstreams.payments.headers.authorization: the environment variable PAYMENTS_TOKEN is not set (set it, or write the value out) [config.secret]
holdfast.yaml: 1 error, 0 warnings
[2]
$ holdfast check --quiet
! holdfast: holdfast.yaml:18:30: downstreams.payments.headers.authorization: the environment variable PAYMENTS_TOKEN is not set (set it, or write the value out)
[2]
setenv PAYMENTS_TOKEN secret
$ holdfast check
~ W holdfast.yaml:9:20: downstreams.payments.total_timeout: 4 attempts of 15s .* \[ladder.truncated\]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER  BREAKS
payments           4           50s              4  20 failures  5s to 1m
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
charge    default  payments             4              1                 1           5h8m
invoice   reports  -                    6              0                 0           5h6m
holdfast.yaml: 0 errors, 1 warning
$ holdfast check --json
~ \{"file":"holdfast.yaml","errors":0,"warnings":1,"downstreams":\[\{"downstream":"payments","attempts_per_call":4,"longest_call_ms":50000,"all_tries_ms":63500,"first_cut_try":4,"earliest_trip_failures":20,"earliest_trip_ms":null,"break_ms":5000,"max_break_ms":60000\}\],"types":\[\{"type":"charge",.*"worst_case_calls":1,"time_to_death_ms":18505000\},.*\],"items":\[\{"severity":"warning","rule":"ladder.truncated","file":"holdfast.yaml","line":9,"column":20,.*"next":null\}

# A secret never shows, whatever is wrong with it.
file hook
not a url of 4711
end
$ holdfast check
E holdfast.yaml:28:26: alerts.pager.webhook.url: it is not an http or https URL (write https://…) [config.url]
holdfast.yaml: 1 error, 0 warnings
[2]

# A named file has to be there; $HOLDFAST_CONFIG is used when there is no holdfast.yaml here.
$ holdfast check --config nowhere.yaml
E nowhere.yaml: configuration: No such file or directory (check the path of --config or $HOLDFAST_CONFIG) [config.file]
nowhere.yaml: 1 error, 0 warnings
[2]
$ rm holdfast.yaml
$ HOLDFAST_CONFIG=elsewhere.yaml holdfast check
E elsewhere.yaml: configuration: No such file or directory (check the path of --config or $HOLDFAST_CONFIG) [config.file]
elsewhere.yaml: 1 error, 0 warnings
[2]

# S3.22: a store's URL from a variable that is not set stops everything.
$ echo 'store: "sqlite:${NO_SUCH_VARIABLE}"' > s.yaml; holdfast check --config s.yaml
E s.yaml:1:8: store: the environment variable NO_SUCH_VARIABLE is not set (set it, or write the value out) [config.secret]
s.yaml: 1 error, 0 warnings
[2]

# All that is wrong is told at once, with the nearest known key.
file bad.yaml
nod: {}
node: {workrs: 3, lease: 60, heartbeat: 1e3, poll: 99999999999999999999s}
downstreams:
  payments:
    url: ftp://x
    attempt_timeout: 5
    brekaer: {}
    total_timeout: [1s]
    allow_truncated: yes
    bulkhead: {max: 0}
    retry: {jitter: ful, backoff: table}
    on_open: fial
    max_executions: 3
jobs:
  a: {kind: http, downstream: paymnts}
  b: {kind: exec, path: /x}
  c: {kind: exec, command: [relative]}
  d: {}
  e: {kind: noop, curve: {factor: 2}}
  f: {kind: noop, curve: [], max_executions: 2, retries: 1}
  g: {kind: noop, never_retry: ["a..b"]}
limts: {}
end
$ holdfast check --config bad.yaml
E bad.yaml:1:1: nod: unknown key (did you mean `node`?) [config.unknown_key]
E bad.yaml:2:8: node.workrs: unknown key (did you mean `workers`?) [config.unknown_key]
E bad.yaml:2:26: node.lease: `60` has no unit (write 60s or 60ms) [config.missing_unit]
E bad.yaml:2:41: node.heartbeat: `1e3` is not a duration (write 250ms, 5s, 2m, 1h or 7d) [config.type]
E bad.yaml:2:52: node.poll: `99999999999999999999s` overflows (write a smaller one) [config.overflow]
E bad.yaml:6:22: downstreams.payments.attempt_timeout: `5` has no unit (write 5s or 5ms) [config.missing_unit]
E bad.yaml:7:5: downstreams.payments.brekaer: unknown key (did you mean `breaker`?) [config.unknown_key]
E bad.yaml:8:20: downstreams.payments.total_timeout: it has to be a single value, not a list (write one value, without brackets or keys) [config.type]
E bad.yaml:9:22: downstreams.payments.allow_truncated: `yes` is neither true nor false (write true or false) [config.type]
E bad.yaml:10:21: downstreams.payments.bulkhead.max: 0 is not within 1 and 100000 (stay inside) [config.range]
E bad.yaml:11:21: downstreams.payments.retry.jitter: `ful` is none of none|factor|full|equal|decorrelated (did you mean `full`?) [config.choice]
E bad.yaml:12:14: downstreams.payments.on_open: `fial` is none of park|fail (did you mean `fail`?) [config.choice]
E bad.yaml:13:5: downstreams.payments.max_executions: unknown key (it belongs there: defaults.max_executions) [config.unknown_key]
~ E bad.yaml:18:6: jobs.d: the key `kind` is missing \(.*\) \[config.missing_key\]
E bad.yaml:19:26: jobs.e.curve: it has neither `base` nor `poly` (write {base: 2s, factor: 2, cap: 5m} or {poly: 4, plus: 15s}) [config.curve]
E bad.yaml:20:26: jobs.f.curve: a curve has at least one wait (write [60s], or `retries: 0` for none) [config.curve]
E bad.yaml:22:1: limts: unknown key (did you mean `limits`?) [config.unknown_key]
E bad.yaml:20:6: jobs.f: `max_executions` and `retries` are both given (keep one of them) [config.curve]
E bad.yaml:5:10: downstreams.payments.url: `ftp://x` is not an http or https URL without query (write https://host[:port][/path]) [config.url]
E bad.yaml:11:35: downstreams.payments.retry.backoff: the key `table` is missing (add table: [200ms, 1s]) [config.table]
E bad.yaml:15:31: jobs.a.downstream: there is no downstream `paymnts` (did you mean `payments`?) [config.reference]
E bad.yaml:16:25: jobs.b.path: only kind http has this key (leave it out, or change kind) [config.kind]
E bad.yaml:16:6: jobs.b: kind exec needs a `command` (write command: [/path/to/program]) [config.missing_key]
E bad.yaml:17:28: jobs.c.command: `relative` is not an absolute path (write its absolute path) [config.command]
E bad.yaml:21:32: jobs.g.never_retry: `a..b` is not a dotted error type (write a prefix such as http.404, sql or validation) [config.error_type]
bad.yaml: 25 errors, 0 warnings
[2]

# What YAML would allow and we do not.
$ printf 'node: {lease: 1m}\nnode: {lease: 2m}\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:2:1: node: the key stands in line 1 already (keep one of them) [config.duplicate_key]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: &a {lease: 1m}\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:7: anchor: anchors are not allowed (write the value out) [config.anchor]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: !!map {lease: 1m}\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:7: tag: tags are not allowed (leave it out: every key knows its type) [config.tag]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: {lease: 1m}\n---\nnode: {}\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:2:1: document: a second one begins here (keep one) [config.documents]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: {name: "a\\0b"}\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:14: text: a text holds a NUL (leave the NUL out) [config.text]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: {name: "a\377b"}\n' > y.yaml; holdfast check --config y.yaml
~ E y.yaml:\d+:\d+: text: .* at byte \d+ \(save the file as UTF-8 without control characters\) \[config.text\]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'node: {name: [\n' > y.yaml; holdfast check --config y.yaml
~ E y.yaml:\d+:\d+: YAML: .* \[config.syntax\]
y.yaml: 1 error, 0 warnings
[2]
$ printf -- '- a\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:1: configuration: it has to be a map, not a list (write keys and values: {key: value}) [config.type]
y.yaml: 1 error, 0 warnings
[2]

# A byte order mark is no part of the first key.
$ printf '\357\273\277node: {lease: 1m}\nstore: sqlite:x.db\n' > y.yaml; holdfast check --config y.yaml
y.yaml: 0 errors, 0 warnings

# A store that no command could open is told here, without showing a password.
$ printf 'store: postgresql://u:secret@h/x\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:8: store: it names no store this program knows (write sqlite:PATH) [config.store]
y.yaml: 1 error, 0 warnings
[2]
$ printf 'store: "sqlite:"\n' > y.yaml; holdfast check --config y.yaml
E y.yaml:1:8: store: it names no store this program knows (write sqlite:PATH) [config.store]
y.yaml: 1 error, 0 warnings
[2]

# What a runner would refuse at its start is told here, by the library's own rules.
file y.yaml
downstreams:
  port: {url: "http://h:99999"}
  host: {url: "http://[::1"}
  length: {url: "http://h", headers: {Content-Length: "5"}}
jobs:
  push: {kind: http, downstream: length, headers: {transfer-encoding: chunked}, execution_timeout: 3m}
end
$ holdfast check --config y.yaml
E y.yaml:2:15: downstreams.port.url: its port is not a number from 1 to 65535 (write it as https://host[:port][/path]) [config.downstream]
E y.yaml:3:15: downstreams.host.url: its host has one bracket only (write it as https://host[:port][/path]) [config.downstream]
E y.yaml:4:38: downstreams.length.headers: Content-Length: the header is set by holdfast itself (leave it out) [config.downstream]
E y.yaml:6:51: jobs.push.headers: transfer-encoding: the header is set by holdfast itself (leave it out) [config.downstream]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER  BREAKS
port               4         1m23s           none  20 failures  5s to 1m
host               4         1m23s           none  20 failures  5s to 1m
length             4         1m23s           none  20 failures  5s to 1m
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
push      default  length               6              4                24          4h45m
y.yaml: 4 errors, 0 warnings
[2]

# S4.5: own rules are a list of maps; what is wrong with one is told with its place, by the schema first …
file rules.yaml
downstreams:
  p:
    url: http://127.0.0.1:1
    rules:
      - {name: a, status: 1000, class: transient}
      - {name: b, status: 599-500, clas: transient}
      - {status: 404}
      - text
  q: {url: "http://127.0.0.1:1", rules: {name: a}}
jobs:
  j: {kind: noop, rules: [{name: a, error_type: curl, retry: none}]}
end
$ holdfast check --config rules.yaml
E rules.yaml:5:27: downstreams.p.rules[0].status: `1000` is no status from 100 to 999 (write 404 or 500-599) [config.status]
E rules.yaml:6:27: downstreams.p.rules[1].status: the range `599-500` is upside down (write the lower one first) [config.status]
E rules.yaml:6:36: downstreams.p.rules[1].clas: unknown key (did you mean `class`?) [config.unknown_key]
E rules.yaml:7:9: downstreams.p.rules[2]: the key `name` is missing (letters, digits, - and _; outcomes that it decides show it as rule.NAME) [config.missing_key]
E rules.yaml:8:9: downstreams.p.rules[3]: it has to be a map, not a single value (write keys and values: {key: value}) [config.type]
E rules.yaml:9:41: downstreams.q.rules: it has to be a list, not a map (put it in brackets: [first, second]) [config.type]
E rules.yaml:11:26: jobs.j.rules: only kind http has this key (leave it out, or change kind) [config.kind]
rules.yaml: 7 errors, 0 warnings
[2]

# … then by the library.
file rules.yaml
downstreams:
  p:
    url: http://127.0.0.1:1
    rules:
      - {name: a b, status: 404, class: ok}
      - {name: b, class: ok}
      - {name: c, status: 404}
      - {name: d, status: 404, class: ok, retry: now}
      - {name: e, error_type: "a..b", class: ok}
      - {name: f, header: {name: "x y"}, class: ok}
      - {name: g, header: {name: "x", value: "a\nb"}, class: ok}
      - {name: h, body: "abc", body_within: 2, class: ok}
jobs:
  j:
    kind: http
    downstream: p
    rules:
      - {name: a, status: 404, class: ok}
      - {name: a, status: 405, class: ok}
end
$ holdfast check --config rules.yaml
E rules.yaml:5:16: downstreams.p.rules[0].name: it has not 1 to 40 of these characters (use letters, digits, - and _) [config.rule]
E rules.yaml:6:9: downstreams.p.rules[1]: it would match everything (name a status, error type, header, body or method) [config.rule]
E rules.yaml:7:9: downstreams.p.rules[2]: it decides nothing (give it a class, a retry or a breaker verdict) [config.rule]
E rules.yaml:8:50: downstreams.p.rules[3].retry: only what is transient is tried again: ok (add class transient) [config.rule]
E rules.yaml:9:31: downstreams.p.rules[4].error_type: it is not a dotted error type (write a prefix such as http.503, curl or timeout) [config.rule]
E rules.yaml:10:27: downstreams.p.rules[5].header: its name is not a token (RFC 9110 5.6.2) [config.rule]
E rules.yaml:11:27: downstreams.p.rules[6].header: its value holds a CR, LF or another control character [config.rule]
E rules.yaml:12:45: downstreams.p.rules[7].body_within: 2 is not within the text's 3 bytes and 4096 [config.rule]
E rules.yaml:18:7: jobs.j.rules: rules[0] is called `a` too (give each its own) [config.rule]
DOWNSTREAM  ATTEMPTS  LONGEST CALL  FIRST CUT TRY  OPENS AFTER  BREAKS
p                  4         1m23s           none  20 failures  5s to 1m
JOB TYPE  QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
j         default  p                    6              4                24          4h45m
rules.yaml: 9 errors, 0 warnings
[2]

# The rate limit: a burst needs a limit, and has to fill within a year; what is declared is held against it.
file rate.yaml
downstreams:
  a: {url: "http://a.test", rate: {burst: 5}}
  b: {url: "http://b.test", rate: {limit: 1/h, burst: 100000}}
  c: {url: "http://c.test", rate: {limit: 10/s}, declared_rate: 20/s}
end
$ holdfast check --config rate.yaml
E rate.yaml:2:43: downstreams.a.rate.burst: a burst of 5, but no limit (give rate.limit too) [rate.burst]
~ E rate.yaml:3:\d+: downstreams.b.rate.burst: a burst of 100000 at 0.000277778/s takes longer than a year to fill \(.*\) \[rate.burst\]
~ W rate.yaml:4:\d+: downstreams.c.rate.limit: 20 calls a second are declared, the limit is 10 \(.*\) \[rate.declared\]
~ DOWNSTREAM .*
~ c .*
rate.yaml: 2 errors, 1 warning
[2]

# Faults are refused unless the file says so at its top; what is wrong with one is told with its place.
file faults.yaml
downstreams:
  a: {url: "http://a.test", faults: [{kind: drop}]}
  b:
    url: http://b.test
    faults:
      - {kind: status}
      - {kind: reset, share: 0}
      - {kind: drop, every: 60s}
      - {kind: delay}
      - {kind: reset, status: 503}
end
$ holdfast check --config faults.yaml
~ E faults.yaml:2:\d+: downstreams.a.faults: faults are refused here \(say allow_fault_injection: true at the top, or take them out\) \[config.faults\]
~ E faults.yaml:\d:\d+: downstreams.b.faults: faults are refused here .*
~ E faults.yaml:6:9: downstreams.b.faults\[0\]: the status is 0 \(give one from 200 to 599\) \[config.faults\]
~ E faults.yaml:7:\d+: downstreams.b.faults\[1\].share: the share is 0 \(a number above 0, at most 1\) \[config.faults\]
~ E faults.yaml:8:9: downstreams.b.faults\[2\]: `every` and `for` belong together .*
~ E faults.yaml:9:9: downstreams.b.faults\[3\]: a delay of nothing \(say how long\) \[config.faults\]
~ E faults.yaml:10:\d+: downstreams.b.faults\[4\].status: a reset has none .*
~ DOWNSTREAM .*
~ a .*
~ b .*
faults.yaml: 7 errors, 0 warnings
[2]
file game.yaml
allow_fault_injection: true
downstreams:
  a: {url: "http://127.0.0.1:1", retry: {max: 0}, faults: [{kind: status, status: 418}]}
end
$ holdfast call a /x --config game.yaml 2> log
outcome            failure
status             418
class              permanent
error              http.418
message            injected fault: status 418
rule               http.4xx
attempts           1 (0 retries)
~ took               .*
~ first byte         .*
~ last attempt       .*
[1]
$ cat log
~ \{"time":"[^"]*","level":"warning","event":"downstream.faults","downstream":"a","count":1,"first":"status"\}

# Paths that are there and cannot be meant.
file folders.yaml
store: sqlite:.
jobs:
  run: {kind: exec, command: [/]}
  call: {kind: plugin, library: /tmp}
outboxes:
  shop: {file: /tmp}
end
$ holdfast --config folders.yaml check
E folders.yaml:3:30: jobs.run.command: `/` is no file (name a program) [config.command]
E folders.yaml:4:33: jobs.call.library: `/tmp` is no file (name a shared object) [config.path]
E folders.yaml:6:16: outboxes.shop.file: `/tmp` is no file (name the application's own file) [config.path]
E folders.yaml:1:8: store: it names a folder, or something else that is no file (name a file, such as sqlite:/var/lib/holdfast/jobs.db) [config.store]
folders.yaml: 4 errors, 0 warnings
[2]
