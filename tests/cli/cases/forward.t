# Where deaths go: to a command, to another queue, each a job of its own [S2.24, S2.25, S2.28, S2.32].
file holdfast.yaml
store: sqlite:jobs.db
node: {name: n1}
queues: {default: {order: 1}, repairs: {order: 2}}
jobs:
  charge: {kind: exec, command: [/bin/sh, -c, "echo no money >&2; exit 65"]}
  repair: {kind: exec, command: [/bin/cat]}
forward:
  - {name: tell, type: charge, to: {command: [/bin/sh, -c, "printf '%s %s ' $HOLDFAST_DEAD_LETTER $HOLDFAST_ERROR_TYPE; cat"]}}
  - {name: repairs, queue: default, class: permanent, to: {queue: repairs, type: repair}}
  - {name: odd, from: shop, of: messages, to: {command: [/bin/false]}, retries: 0}
end
$ holdfast check --quiet
$ holdfast enqueue charge '{"order":7}'
1
# A filter of queues keeps no death back: what tells of it runs wherever a job may end.
$ holdfast run --queues default --until-idle 2> log
~ 2 executions: 1 succeeded, 0 to be retried, 1 dead,.*
$ grep -c '"event":"job.dead"' log
1
$ holdfast job show 2 --json
~ .*"state":"succeeded".*"type":"holdfast.forward.tell","queue":"holdfast.deaths".*"result":"1 exit.65 \{\\"order\\":7\}".*
$ holdfast dead show 1
...
forwarded          by tell as job 2: succeeded
forwarded          by repairs as job 3: not yet done
# Nobody does it twice by mistake.
$ holdfast dead redrive 1 --actor ada
! holdfast: dead letter: 1 was forwarded, as job 2 (say --force to run it here as well)
[4]
$ holdfast job requeue 1 --actor ada
! holdfast: job: 1 was forwarded, as job 2 (say --force to run it here as well)
[4]
$ holdfast run --until-idle 2> log
~ 1 executions: 1 succeeded.*
$ holdfast dead show 1 --json
~ .*"forwards":\[\{"name":"tell","job_id":2,"outcome":"succeeded"\},\{"name":"repairs","job_id":3,"outcome":"succeeded"\}\]\}
$ holdfast dead redrive 1 --actor ada --force
dead letter 1 redriven as job 4

# What leads nowhere is found before the first death [S2.27].
file wrong.yaml
queues: {default: {order: 1}}
downstreams: {audit: {url: "http://127.0.0.1:1"}}
jobs: {charge: {kind: noop}}
forward:
  - {from: a, to: {downstream: audits}}
  - {from: b, to: {queue: repair}}
  - {from: c, to: {queue: default, type: charges}}
  - {from: c, to: {queue: default, downstream: audit}}
  - {from: e, to: {}}
  - {name: handler, to: {queue: default}}
end
$ holdfast --config wrong.yaml check
~ E wrong.yaml:5:\d+: forward.*to.downstream: there is no `audits` in downstreams \(did you mean `audit`\?\) \[config.reference\]
~ E wrong.yaml:6:\d+: forward.*to.queue: there is no `repair` in queues.*\[config.reference\]
~ E wrong.yaml:7:\d+: forward.*to.type: there is no `charges` in jobs \(did you mean `charge`\?\) \[config.reference\]
~ E wrong.yaml:8:\d+: forward.*: it has more than one target \(give a queue, a downstream or a command\) \[config.forward\]
~ E wrong.yaml:8:\d+: forward.*: another forwarder is called `c` \(give each a name\) \[config.name\]
~ E wrong.yaml:9:\d+: forward.*: it forwards to nowhere \(give a queue, a downstream or a command\) \[config.forward\]
~ E wrong.yaml:10:\d+: forward.*: `handler` stands for the death handlers \(choose another name\) \[config.forward\]
wrong.yaml: 7 errors, 0 warnings
[2]

# Kinds of failures, and the policy each wants [S2.34]: network, rate limit, input, deadlock, payment.
file kinds.yaml
downstreams:
  bank: {url: "https://bank.example"}
jobs:
  network: {kind: noop, curve: {base: 2s, factor: 2, cap: 5m}, max_executions: 8}
  rate_limit: {kind: noop, curve: {base: 1m, factor: 2, cap: 1h}, max_executions: 8}
  input: {kind: noop, retries: 0, never_retry: [validation, business]}
  deadlock: {kind: noop, curve: [200ms, 1s]}
  payment: {kind: http, downstream: bank, path: /charges, repeatable: false}
  compensate: {kind: exec, command: [/usr/local/bin/refund]}
queues: {default: {order: 1}, refunds: {order: 2}}
forward:
  - {type: payment, to: {queue: refunds, type: compensate}}
end
$ holdfast --config kinds.yaml check
...
JOB TYPE    QUEUE    DOWNSTREAM  EXECUTIONS  ATTEMPTS EACH  WORST-CASE CALLS  TIME TO DEATH
~ network     default  -                    8 .*
~ rate_limit  default  -                    8 .*
~ input       default  -                    1 .*
~ deadlock    default  -                    3 .*
~ payment     default  bank .* 1 .*
~ compensate  default  -                    6 .*
kinds.yaml: 0 errors, 0 warnings

# A type that comes back lets its quarantined jobs in again, where it says so (R9), and not otherwise [S1.14].
$ holdfast --store sqlite:back.db enqueue late hello
1
! holdfast: warning: the configuration has no job type `late`
$ holdfast --store sqlite:back.db run --until-idle 2> log
~ .*; 1 quarantined;.*
file late.yaml
store: sqlite:back.db
jobs: {late: {kind: noop}}
end
$ holdfast --config late.yaml run --until-idle 2> log
~ 0 executions.*
file late.yaml
store: sqlite:back.db
jobs: {late: {kind: noop, release_quarantined: true}}
end
$ holdfast --config late.yaml run --until-idle 2> log
~ 1 executions: 1 succeeded.*
$ holdfast --config late.yaml dead list --status redriven --json
~ .*"settled_by":"holdfast","settled_reason":"its type is known now".*

# Hostile error text is kept clean and cut, and shown clean: I65, I66.
file hostile.sh
printf '\033[31m<script>alert(1)</script>\377\000end\n' >&2
head -c 10000000 /dev/zero | tr '\0' x >&2
printf '\n\033]0;owned\007\360\237\231\202 the last line\n' >&2
exit 65
end
file template.yaml
store: sqlite:hostile.db
jobs: {odd: {kind: exec, command: [/bin/sh, HERE/hostile.sh]}}
end
$ sed "s|HERE|$PWD|" template.yaml > hostile.yaml
$ holdfast --config hostile.yaml enqueue odd x
1
$ holdfast --config hostile.yaml run --until-idle 2> log
~ 1 executions: 0 succeeded, 0 to be retried, 1 dead.*
$ cat log | LC_ALL=C grep -c "$(printf '\033')"
0
[1]
$ holdfast --config hostile.yaml dead show 1 | LC_ALL=C tr -d '\12\40-\176\200-\377' | wc -c
0
$ holdfast --config hostile.yaml dead show 1 --json > dead.json
$ python3 -c "import json; d = json.load(open('dead.json', encoding='utf-8')); print(len(d['detail'].encode()) <= 65536, '\0' in d['detail'], '<script>' in d['detail'])"
True False True
