# From a death to its settlement: run, dead list, show, redrive, resolve, discard, requeue, each on the record.
file holdfast.yaml
store: sqlite:jobs.db
node: {name: n1}
jobs:
  ok: {kind: exec, command: [/bin/cat]}
  bad: {kind: exec, command: [/bin/sh, -c, "echo broken >&2; exit 65"]}
  flaky: {kind: exec, command: [/bin/false], max_executions: 1}
  nop: {kind: noop}
end
$ holdfast enqueue ok hello
1
$ holdfast enqueue bad x
2
$ holdfast enqueue flaky '{"a":1}'
3
$ holdfast enqueue nop
4
$ holdfast enqueue unknown_type
5
! holdfast: warning: the configuration has no job type `unknown_type`
$ holdfast run --until-idle 2> log
4 executions: 2 succeeded, 0 to be retried, 2 dead, 0 given back, 0 kept back; 1 quarantined; 0 attempts
# S0.23: exactly one Error line for each death.
$ grep -c '"level":"error","event":"job.dead"' log
3
$ holdfast job list
ID  STATE        TYPE          QUEUE    EXECUTIONS  RUN AT                       ERROR
~  5  quarantined  unknown_type  default           0  TIME  unknown_type
~  4  succeeded    nop           default           1  TIME  -
~  3  dead         flaky         default           1  TIME  exit.1
~  2  dead         bad           default           1  TIME  exit.65
~  1  succeeded    ok            default           1  TIME  -
$ holdfast job show 1 --json
~ .*"state":"succeeded".*"result":"hello",.*"history":\[\{"execution":1,"event":"succeeded","shown":"succeeded",.*"node":"n1",.*\}\]\}
$ holdfast dead list --json
~ \{"items":\[.*"next":null\}
$ holdfast dead list --class permanent
ID  STATUS  JOB  TYPE  CLASS      ERROR    EXECUTIONS  DEAD AT
~ \s*\d  dead      2  bad   permanent  exit.65           1  TIME
$ holdfast dead list --group
~ COUNT  TYPE +DOWNSTREAM  CLASS +ERROR +FIRST +LAST +EXAMPLE  FINGERPRINT
...
~ \s+1  bad           -           permanent            exit.65       TIME  TIME +\d  [0-9a-f]+
...
$ holdfast dead list --error-type exit.1 --json | tr , '\n' | grep '"id"'
~ .*\{"id":\d
$ holdfast dead redrive --type flaky --actor ada --dry-run
~ dead letter \d would be redriven
1 would be redriven, 0 refused
$ holdfast dead redrive --type flaky --actor ada --reason 'fixed' --json
! holdfast: task 1: 1 dead letters to redrive
~ \{"task":1,"state":"done","total":1,"redriven":1,"refused":0,.*"actor":"ada","reason":"fixed","type":"flaky",.*\}
$ holdfast dead list --type flaky --status redriven --json
~ .*"status":"redriven".*"settled_by":"ada","settled_reason":"fixed".*"new_job_id":6.*
$ holdfast dead redrive $(holdfast dead list --type flaky --status redriven --json | sed 's/.*{"id":\([0-9]*\),.*/\1/') --actor ada
~! holdfast: dead letter: \d is already redriven as job 6 \(look at that job\)
[4]
$ holdfast job show 6 --json
~ .*"type":"flaky".*"root_id":3,.*"payload":"\{\\"a\\":1\}".*
$ holdfast dead redrive $(holdfast dead list --type bad --json | sed 's/.*{"id":\([0-9]*\),.*/\1/') --actor ada --payload corrected --new-key
~ dead letter \d redriven as job 7
$ holdfast job show 7 --json
~ .*"payload":"corrected".*
$ holdfast job requeue 5 --actor ada --reason 'handler is back'
job 5 requeued
$ holdfast job show 5 --json
~ .*"state":"pending".*"executions":0,.*
$ holdfast run --until-idle --json --quiet 2> log
~ \{"claimed":\d+,"started":2,"succeeded":0,"retried":0,"died":2,.*"quarantined":1,.*\}
# A second death of the same job is another dead letter.
$ holdfast dead list --type unknown_type --status all --json
~ .*"death_no":2.*"death_no":1.*
$ holdfast dead resolve $(holdfast dead list --type unknown_type --json | sed 's/.*\[{"id":\([0-9]*\),.*/\1/') --actor ada --reason 'by hand'
~ dead letter \d resolved
$ holdfast dead discard $(holdfast dead list --type bad --json | sed 's/.*\[{"id":\([0-9]*\),.*/\1/') --json
~ \{"id":\d,"status":"discarded"\}
$ holdfast dead redrive --all --actor ada --expect 1
1 redriven, 0 refused
$ holdfast dead list --json
{"items":[],"next":null}
$ holdfast dead redrive --all --type x --actor ada
! holdfast: dead redrive: ids, filters and --all exclude each other (give one of them)
[2]
