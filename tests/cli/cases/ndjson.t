# Bulk: 500 lines a transaction; a wrong line is named and nothing of its 500 is enqueued.
file a.ndjson
{"type":"a","payload":"text with \u0000 in it"}
{"type":"b","payload":{ "n": 0.10, "big": 18446744073709551616 }, "queue":"q","priority":3,"in":"1h"}

{"type":"c","payload_base64":"AP8=","curve":["1s","2m"],"max_executions":2,"unique":"u","limit":"tenant:7"}
{"payload":[1, 2]}
end
$ holdfast enqueue d --ndjson a.ndjson
4 jobs enqueued
$ holdfast job show 2 --json
~ .*"queue":"q".*"priority":3,.*"payload":"\{\\"n\\":0.10,\\"big\\":18446744073709551616\}".*
$ holdfast job show 1 --json
~ .*"payload_bytes":17,"payload_base64":"dGV4dCB3aXRoIAAgaW4gaXQ=".*
$ holdfast job show 4 --json
~ .*"type":"d",.*"payload":"\[1,2\]".*
$ holdfast enqueue --ndjson --json < a.ndjson
! holdfast: stdin:5: type: it is missing (add "type", or name it on the command line)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 5
[2]
$ i=1; while [ $i -le 1203 ]; do echo '{"type":"t","payload":'$i'}'; i=$((i + 1)); done > many; holdfast enqueue --ndjson many --json
{"enqueued":1203,"existed":0,"first_id":5,"last_id":1207}
$ sed '700s/.*/{"type":"t","paylaod":1}/' many > wrong; holdfast enqueue --ndjson wrong
! holdfast: wrong:700: paylaod: unknown field (did you mean `payload`?)
! holdfast: 500 jobs were enqueued before it, none of lines 501 to 700
[2]
$ holdfast job list --limit 1 --json
~ \{"items":\[\{"id":1707,.*
$ echo '{"type":"t"' | holdfast enqueue --ndjson
~! holdfast: stdin:1:\d+: line: .* \(write one JSON object a line\)
~! holdfast: 0 jobs were .*
[2]
$ echo '{"type":"t","type":"u"}' | holdfast enqueue --ndjson -
~! holdfast: stdin:1:\d+: line: duplicate .*
~! holdfast: 0 jobs were .*
[2]
$ printf '{"type":"t","queue":"a\\u0000b"}\n' | holdfast enqueue --ndjson
! holdfast: stdin:1: queue: it holds a NUL (leave it out)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ printf '{"type":"t","queue":"a\377b"}\n' | holdfast enqueue --ndjson
~! holdfast: stdin:1:\d+: line: unable to decode byte 0xff .*
~! holdfast: 0 jobs were .*
[2]
$ printf '{"type":"t","priority":10}\n' | holdfast enqueue --ndjson
! holdfast: stdin:1: priority: it has to be a whole number from 0 to 9
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ python3 -c "print('{\"type\":\"t\"}'); print('{\"type\":\"t\",\"payload\":\"' + 'x' * 65537 + '\"}')" | holdfast enqueue --ndjson
~! holdfast: stdin:2: payload: 65537 bytes.*
~! holdfast: 0 jobs were .*
[2]
$ holdfast enqueue --ndjson nowhere
! holdfast: nowhere: No such file or directory (check the path)
[2]
$ holdfast enqueue t payload --ndjson a.ndjson
! holdfast: enqueue: --ndjson brings its own payloads (put payloads into the lines)
[2]

# What was there already is not counted as new.
file twice.ndjson
{"type":"t","unique":"once"}
{"type":"t","unique":"once"}
{"type":"t"}
end
$ holdfast enqueue --ndjson twice.ndjson --store sqlite:twice.db
2 jobs enqueued, 1 were there already
$ holdfast enqueue --ndjson twice.ndjson --store sqlite:twice.db --json
{"enqueued":1,"existed":2,"first_id":1,"last_id":3}

$ printf '\357\273\277{"type":"t"}\n' > mark; holdfast enqueue --ndjson mark --store sqlite:mark.db
1 jobs enqueued

# Unique keys: kept, replaced, one in a period.
$ holdfast enqueue t old --unique k --in 1h --store sqlite:unique.db
1
$ holdfast enqueue t new --unique k --in 2h --store sqlite:unique.db
1
$ holdfast enqueue t newer --unique k --replace --in 2h --json --store sqlite:unique.db
{"id":1,"existed":true}
$ holdfast job show 1 --json --store sqlite:unique.db
~ .*"payload":"newer".*
$ printf '{"type":"t","payload":"newest","unique":"k","replace":true}\n{"type":"t","unique":"h","unique_for":"1000d"}\n{"type":"t","unique":"h","unique_for":"1000d"}\n' | holdfast enqueue --ndjson --store sqlite:unique.db
1 jobs enqueued, 2 were there already
$ holdfast job show 1 --json --store sqlite:unique.db
~ .*"payload":"newest".*
$ holdfast enqueue t --replace --store sqlite:unique.db
! holdfast: unique: missing, but the job says how it is unique (name what is to be unique)
[2]
$ printf '{"type":"t","unique":"k","replace":1}\n' | holdfast enqueue --ndjson --store sqlite:unique.db
! holdfast: stdin:1: replace: it has to be true or false
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]

# What the library refuses is told in the words of the line or of the flags, never in those of its own fields.
$ printf '{"type":"t","unique":""}\n' | holdfast enqueue --ndjson
! holdfast: stdin:1: unique: it is empty (leave it out for none)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ for key in queue downstream idempotency_key source source_message_id; do printf '{"type":"t","%s":""}\n' $key | holdfast enqueue --ndjson --quiet 2>&1 | head -1; done
holdfast: stdin:1: queue: it is empty (leave it out for none)
holdfast: stdin:1: downstream: it is empty (leave it out for none)
holdfast: stdin:1: idempotency_key: it is empty (leave it out for none)
holdfast: stdin:1: source: it is empty (leave it out for none)
holdfast: stdin:1: source_message_id: it is empty (leave it out for none)
$ printf '{"type":"t"}\n{"type":"t","in":"300000000d"}\n' | holdfast enqueue --ndjson
! holdfast: stdin:2: in: after the year 9999 (give a shorter wait)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 2
[2]
$ printf '{"type":"t","in":"2h","expires_in":"1h"}\n' | holdfast enqueue --ndjson --quiet
! holdfast: stdin:1: expires_in: it would expire before it is due (let it expire after it is due)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ python3 -c "print('{\"type\":\"t\",\"unique\":\"' + 'k' * 2000 + '\"}')" | holdfast enqueue --ndjson
~! holdfast: stdin:1: unique: 2000 bytes, at most \d+ fit \(shorten it\)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ printf '{"type":"t","unique":"k","unique_for":"4000d"}\n' | holdfast enqueue --ndjson
~! holdfast: stdin:1: unique_for: .* at most ten years\)
! holdfast: 0 jobs were enqueued before it, none of lines 1 to 1
[2]
$ holdfast enqueue t --in 2h --expires-in 1h
! holdfast: expires-in: it would expire before it is due (let it expire after it is due)
[2]
$ holdfast enqueue t --in 300000000d
! holdfast: in: after the year 9999 (give a shorter wait)
[2]
$ holdfast enqueue t --unique "$nothing"
! holdfast: unique: its value is empty (set the variable it comes from, or leave the flag out)
[2]
