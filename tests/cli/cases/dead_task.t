# A redrive of many is a task of the store: begun, worked on by the command or by nodes, stopped, cancelled (I89, R8).
file holdfast.yaml
store: sqlite:jobs.db
node: {name: n1}
jobs:
  flaky: {kind: exec, command: [/bin/sh, -c, "test -e $OK"], environment: ["OK=OKFILE"], max_executions: 1}
end
$ sed -i "s|OKFILE|$PWD/ok|" holdfast.yaml
$ for i in 1 2 3 4 5 6; do echo '{"type":"flaky","payload":"x"}'; done | holdfast enqueue --ndjson -
6 jobs enqueued
$ holdfast run --until-idle 2> log
6 executions: 0 succeeded, 0 to be retried, 6 dead, 0 given back, 0 kept back; 0 quarantined; 0 attempts
$ holdfast dead redrive --type flaky --actor ada --canary 2 --detach
task 1: 6 dead letters to redrive
# The canary fails again: the other four stay as they are.
$ holdfast run --until-idle 2> log
2 executions: 0 succeeded, 0 to be retried, 2 dead, 0 given back, 0 kept back; 0 quarantined; 0 attempts
$ holdfast dead task list
ID  STATE    OF  REDRIVEN  REFUSED  SUCCEEDED  FAILED  BY   NOTE
~  1  stopped   6         2        0          0       2  ada  \d of \d jobs that ended had failed, of its canary
$ grep -c '"event":"redrive.ended","task":1,"state":"stopped"' log
1
# Mended, and again: the canary first, then all others in the same run.
$ touch ok
# I85: not without the count that was looked at; nothing is begun then.
$ holdfast dead redrive --all --actor ada
! holdfast: redrive: --all would take 6 dead letters (look at them with --dry-run, then add --expect 6)
[4]
$ holdfast dead task list --json | grep -c '"task":2'
0
[1]
$ holdfast dead redrive --all --actor ada --expect 5
! holdfast: redrive: there are 6 dead letters, not 5 (look at them again, and expect so many)
[4]
$ holdfast dead redrive --all --actor ada --reason mended --expect 6 --canary 2 --rate 6000/m --stop-at 20% --detach --json
~ \{"task":2,"state":"running","total":6,"redriven":0,.*"canary":2,.*"rate_per_second":100.0,"stop_at":0.2,.*
$ holdfast run --until-idle 2> log
6 executions: 6 succeeded, 0 to be retried, 0 dead, 0 given back, 0 kept back; 0 quarantined; 0 attempts
$ holdfast dead task show 2
task               2
state              done
by                 ada
reason             mended
dead letters       6: 6 redriven, 0 refused
new jobs           6 succeeded, 0 failed, 0 cancelled
canary             2
rate               100/s
stops at           20% failed
created at         TIME
ended at           TIME
$ holdfast dead task cancel 2
! holdfast: redrive task: 2 is already done
[4]
$ holdfast dead redrive --all --actor ada --expect 0 --detach
task 3: 0 dead letters to redrive
$ holdfast dead task cancel 3 --actor bob --reason 'not now'
task 3 cancelled; what it redrove stays redriven
$ holdfast dead task show 3 --json
~ \{"task":3,"state":"cancelled",.*"note":"by bob: not now",.*
$ holdfast dead task show 9
! holdfast: redrive task: 9 does not exist (`holdfast dead task list` shows what is there)
[3]
$ holdfast dead redrive 1 --actor ada --canary 2
! holdfast: canary: it is for a redrive of many, by a filter (give a filter, or --all)
[2]
$ holdfast dead redrive --all --actor ada --rate 5
! holdfast: rate: `5` is not a rate (write 10/s, 600/m or 36000/h)
[2]
$ holdfast dead redrive --all --actor ada --stop-at 101%
! holdfast: stop-at: `101%` is none (write a percentage from 0 to 100, as 20%)
[2]
