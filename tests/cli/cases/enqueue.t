# What an enqueue takes and what not, at the edges of its ranges.

# I90: a time names its zone or offset; without one, ambiguous or in a gap, nothing is guessed.
$ for t in 2025-10-26T02:30 2025-10-26T02:30:00 '2025-10-26T02:30 Europe/Berlin' '2025-10-26T02:30:00 Europe/Berlin' '2025-03-30T02:30:00[Europe/Berlin]' 2040-02-30T00:00:00Z 2040-01-01T24:00:00Z 2040-01-01T00:00:60+25:00 2040-01-01 tomorrow ''; do holdfast enqueue t --at "$t" && echo "taken: $t"; done 2>&1 | grep -c '^holdfast: at: '
11
$ printf '{"type":"t","at":"2025-10-26T02:30:00"}\n' | holdfast enqueue --ndjson
! holdfast: stdin:1: at: it is not a time of RFC 3339 with a zone (write "TIME")
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
file due.py
import json, subprocess, sys
print(json.loads(subprocess.run(["holdfast", "job", "show", sys.argv[1], "--json"], capture_output=True, text=True).stdout)["run_at"][:19])
end
$ holdfast enqueue t --at 2040-10-28T02:30:00+02:00
1
$ holdfast enqueue t --at 2040-10-28T02:30:00+01:00
2
$ python3 due.py 1; python3 due.py 2
2040-10-28T00:30:00
2040-10-28T01:30:00

# I63, I69: long delays keep their instant over any number of openings; what overflows is refused.
$ holdfast enqueue t --in 3650d
3
$ a=$(python3 due.py 3); holdfast doctor > doctor.log; sleep 0.01; b=$(python3 due.py 3); [ "$a" = "$b" ] && python3 -c "import datetime,sys; d=datetime.datetime.fromisoformat(sys.argv[1])-datetime.datetime.utcnow(); print(d.days)" "$a"
3649
$ for d in -1s 1e9 ' 5' '5 ' 5 +5s 0x5s 1.5s 99999999999d 9223372036854775808ms 1e9s ''; do holdfast enqueue t --in "$d" && echo "taken: $d"; done 2>&1 | grep -cE '^holdfast: (in|run_at_us): '
12
$ holdfast enqueue t --in 106751991d
! holdfast: in: after the year 9999 (give a shorter wait)
[2]
$ holdfast enqueue t --in 1d --expires-in 1h
~! holdfast: expires-in: .*
[2]

# I69: priorities and counts.
$ for p in -1 10 2147483648 4294967296 9223372036854775807 9223372036854775808 1e9 ' 5' 5x ''; do holdfast enqueue t --priority "$p" && echo "taken: $p"; done 2>&1 | grep -c '^holdfast: priority: '
10
$ for n in 0 -1 10001 4294967297 1e1; do holdfast enqueue t --max-executions "$n" && echo "taken: $n"; done 2>&1 | grep -c '^holdfast: max-executions: '
5
$ holdfast enqueue t --priority 0
4
$ holdfast enqueue t --priority 9 --max-executions 10000
5
$ holdfast job list --limit 1 --json
~ \{"items":\[\{"id":5,.*

# I65, I77: a payload is bytes, at the limit and not one more; nothing is stored of what is refused.
$ python3 -c "import sys; sys.stdout.buffer.write(bytes(range(256)) * 256)" > all; holdfast enqueue t --file all
6
$ holdfast job show 6 --json | python3 -c "import base64,json,sys; print(base64.b64decode(json.load(sys.stdin)['payload_base64']) == bytes(range(256)) * 256)"
True
$ printf x >> all; holdfast enqueue t --file all
~! holdfast: payload: 65537 bytes, at most 65536 fit .*
[2]
$ holdfast enqueue t - < all
~! holdfast: payload: 65537 bytes, at most 65536 fit .*
[2]
$ holdfast job list --limit 1 --json
~ \{"items":\[\{"id":6,.*

# Nothing to read: an error, not an empty job.
$ holdfast enqueue t - <&-
~! holdfast: .*
[2]
$ holdfast enqueue --ndjson <&-
~! holdfast: -: .*
[2]

# What the configuration does not know is named; it is no error, other nodes may know it.
file holdfast.yaml
queues: {quick: {order: 1}}
downstreams: {shop: {url: "http://127.0.0.1:1"}}
jobs:
  flaky: {kind: exec, command: [/bin/false], curve: [1ms], max_executions: 2, queue: quick}
  nop: {kind: noop}
end
$ holdfast enqueue flakey --queue quikc --downstream shpo --in 1h
7
! holdfast: warning: the configuration has no job type `flakey` (did you mean `flaky`?)
! holdfast: warning: the configuration has no queue `quikc` (did you mean `quick`?)
! holdfast: warning: the configuration has no downstream `shpo` (did you mean `shop`?)
$ holdfast enqueue nop --queue default --downstream shop --in 1h
8

# S2.5, S2.11, S2.12, S2.13: executions given with the job go before the type's, also when they equal a default, also later.
$ holdfast enqueue flaky --store sqlite:own.db; holdfast enqueue flaky --max-executions 6 --store sqlite:own.db; holdfast enqueue flaky --max-executions 1 --store sqlite:own.db; holdfast enqueue flaky --max-executions 3 --in 1ms --store sqlite:own.db
1
2
3
4
$ holdfast job show 2 --json --store sqlite:own.db
~ .*"max_executions":6,"max_executions_explicit":true.*
$ until holdfast run --until-idle --quiet --json --store sqlite:own.db 2> log && [ "$(holdfast job list --state dead --json --store sqlite:own.db | grep -o '"id"' | wc -l)" = 4 ]; do :; done | tail -1 > counts; for i in 1 2 3 4; do holdfast job show $i --json --store sqlite:own.db | python3 -c "import json,sys; j=json.load(sys.stdin); print(j['state'], j['executions'])"; done
dead 2
dead 6
dead 1
dead 3

# S3.20: twenty thousand lines in one go, each once; a wrong last line undoes its own 500 only, and the exit code says so.
$ python3 -c "print('\n'.join('{\"type\":\"nop\",\"payload\":%d,\"source\":\"s\",\"source_message_id\":\"%d\"}' % (i, i) for i in range(20000)))" > many; holdfast enqueue --ndjson many --json --store sqlite:many.db
{"enqueued":20000,"existed":0,"first_id":1,"last_id":20000}
$ holdfast enqueue --ndjson many --json --store sqlite:many.db
{"enqueued":0,"existed":20000,"first_id":1,"last_id":20000}
$ echo '{"type":7}' >> many; sed 's/"source":"s"/"source":"z"/' many | holdfast --quiet enqueue --ndjson --store sqlite:many.db
! holdfast: stdin:20001: type: it has to be a text (write it in quotes)
! holdfast: 20000 jobs were enqueued before it, none of lines 20001 to 20001
[2]
