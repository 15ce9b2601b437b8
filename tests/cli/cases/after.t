# Jobs that wait for others; lists by any filter; what happened to a job.
file holdfast.yaml
store: sqlite:jobs.db
jobs:
  ok: {kind: exec, command: [/bin/true]}
  bad: {kind: exec, command: [/bin/sh, -c, "echo no >&2; exit 65"]}
  next: {kind: noop}
end
$ holdfast enqueue ok --tags 'night, import' --correlation c-1
1
$ holdfast enqueue bad
2
$ holdfast enqueue next --after-jobs 1 --json
{"id":3,"existed":false}
$ holdfast enqueue next --after-jobs 1,2
4
$ holdfast enqueue next --after-jobs '1, 2' --after-ended
5
$ printf '{"type":"next","after_jobs":[4]}\n{"type":"next","after_jobs":[4],"after_ended":true}\n' | holdfast enqueue --ndjson --json
{"enqueued":2,"existed":0,"first_id":6,"last_id":7}
$ holdfast job list --state waiting --json | grep -o '"id":[0-9]*' | tr '\n' ' '
"id":7 "id":6 "id":5 "id":4 "id":3 
$ holdfast job show 4 --json
~ .*"state":"waiting","shown":"waiting",.*"not_before_reason":"parents",.*"parents":\[\{"id":1,"state":"pending","type":"ok","on":"succeeded"\},\{"id":2,"state":"pending","type":"bad","on":"succeeded"\}\],"children":\[\{"id":6,.*\},\{"id":7,.*"on":"ended"\}\],"child_count":2,.*
$ holdfast run --until-idle --quiet --node n1 2> log
$ holdfast job list
ID  STATE      TYPE  QUEUE    EXECUTIONS  RUN AT                       ERROR
~  7  succeeded  next  default           1  TIME  -
~  6  cancelled  next  default           0  TIME  -
~  5  succeeded  next  default           1  TIME  -
~  4  cancelled  next  default           0  TIME  -
~  3  succeeded  next  default           1  TIME  -
~  2  dead       bad   default           1  TIME  exit.65
~  1  succeeded  ok    default           1  TIME  -
$ holdfast job show 4
...
cancel reason      parent.dead, by holdfast
...
RELATIVE       ID  TYPE  STATE      ON
waits for       1  ok    succeeded  succeeded
waits for       2  bad   dead       succeeded
waited for by   6  next  cancelled  succeeded
waited for by   7  next  succeeded  ended

AT                           STATE      WHAT HAPPENED
TIME  enqueued   -
TIME  cancelled  parent_dead parent.dead: it waited for job 2, which is dead
$ holdfast job show 2
...
AT                           STATE     WHAT HAPPENED
TIME  enqueued  -
~ TIME  running   execution 1 on n1
~ TIME  dead      failed exit.65 \(permanent, rule .*\): .*
$ holdfast job requeue 2 --actor ada --reason mended
job 2 requeued
$ holdfast job list --state waiting
ID  STATE    TYPE  QUEUE    EXECUTIONS  RUN AT                       ERROR
~  6  waiting  next  default           0  TIME  -
~  4  waiting  next  default           0  TIME  -
$ holdfast job cancel 6 --actor ada
job 6 cancelled
$ holdfast job list --state ready --json | grep -o '"id":[0-9]*'
"id":2
$ holdfast job list --tag import --json | grep -o '"id":[0-9]*'
"id":1
$ holdfast job list --tag imp --json
{"items":[],"next":null}
$ holdfast job list --correlation c-1 --json | grep -o '"id":[0-9]*'
"id":1
# What is refused, and how.
$ holdfast enqueue next --after-jobs 99
! holdfast: after-jobs: job 99 does not exist (name jobs that the store still has)
[3]
$ holdfast enqueue next --after-jobs 8
! holdfast: after-jobs: job 8 does not exist (name jobs that the store still has)
[3]
$ holdfast enqueue next --after-jobs x
! holdfast: after-jobs: `x` is not a list of job ids (write 17,18, 16 ids at most)
[2]
$ holdfast enqueue next --after-ended
! holdfast: after-ended: there is no job to wait for (add --after-jobs ID)
[2]
$ echo '{"type":"next","after_jobs":[0]}' | holdfast enqueue --ndjson
~! holdfast: stdin:1: after_jobs: it is not a list of job ids .*
~! .*0 jobs were enqueued before it.*
[2]
$ printf '{"type":"next"}\n{"type":"next","after_jobs":[77]}\n' | holdfast enqueue --ndjson
~! holdfast: stdin:2: after_jobs: job 77 does not exist .*
~! .*0 jobs were enqueued before it.*
[3]
$ holdfast job list --after 0
~! holdfast: .*after.*
[2]
$ holdfast job list --limit 1001
~! holdfast: .*limit.*
[2]
$ holdfast job list --state sleeping
~! holdfast: .*state.*
[2]
