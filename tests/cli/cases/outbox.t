# The outbox of an application: made with the program's own statement, relayed by a node [S4.12, S0.34].
file holdfast.yaml
jobs: {nop: {kind: noop, queue: quick, curve: [1s, 2s]}}
outboxes: {shop: {file: shop.db, poll: 100ms}}
end
file sql.py
import sqlite3, sys
shop = sqlite3.connect("shop.db", isolation_level=None)
shop.executescript(sys.stdin.read())
print(shop.execute("SELECT count(*) FROM holdfast_outbox").fetchone()[0])
end
$ holdfast outbox list
~ OUTBOX  ROWS  OLDEST +FILE
~ shop +-  the file is not there +.*shop.db
[1]
$ holdfast outbox ddl | python3 sql.py
0
$ holdfast outbox list --json
~ \{"items":\[\{"name":"shop","file":".*shop.db","rows":0,"oldest_at":null,"oldest_age_ms":0\}\],"next":null\}
$ echo "BEGIN; INSERT INTO holdfast_outbox(type, payload) VALUES ('nop', 'taken back'); ROLLBACK; INSERT INTO holdfast_outbox(type, payload, priority, tags) VALUES ('nop', 'kept', 7, 'red'), (NULL, 'bad', 1, NULL);" | python3 sql.py
2
$ holdfast outbox list
~ OUTBOX +ROWS +OLDEST +FILE
~ shop +2  TIME +.*shop.db
$ holdfast run --until-idle --json --quiet
~ \{"claimed":1,"started":1,"succeeded":1,.*"relayed":1,"poisoned":1,"outbox_oldest_ms":0,.*
~! \{"time":"TIME","level":"error","event":"job.dead","dead_letter":1,"type":"unknown","class":"poison","error_type":"message.malformed","outbox":"shop","source":"shop","source_message_id":"[0-9a-f]{32}",.*
$ holdfast job show 1 --json
~ .*"type":"nop","queue":"quick".*"tags":"red".*"priority":7,.*"max_executions":3,.*"payload":"kept".*
$ holdfast dead list --json
~ .*"id":1,.*"job_id":null.*"class":"poison".*"error_message":"type: empty \(give a name\)".*"source":"shop","source_message_id":"[0-9a-f]{32}".*
$ echo "INSERT INTO holdfast_outbox(type, payload, created_at) VALUES ('nop', '', 1700000000000000)" | python3 sql.py
1
$ holdfast doctor
~ store sqlite .*
...
~ W outbox.late: shop: 1 rows wait in .*shop.db, the oldest for .* \(run a node with this outbox in its configuration\)
~ 0 errors, \d+ warnings?
$ echo "DELETE FROM holdfast_outbox" | python3 sql.py
0
$ printf 'outboxes: {a: {}}\n' > bad.yaml; holdfast check --config bad.yaml
~ E bad.yaml:1:15: outboxes.a: the key `file` is missing .*\[config.missing_key\]
~ .*
[2]
$ printf 'outboxes: {a: {file: a, poll: 1ms}}\n' > bad.yaml; holdfast check --config bad.yaml
~ E bad.yaml:1:\d+: outboxes.a.poll: .*
~ .*
[2]
$ printf 'outboxes: {a: {file: "sqlite:", source: ""}}\n' > bad.yaml; holdfast check --config bad.yaml
E bad.yaml:1:22: outboxes.a.file: it names no file (write the path of the application's file) [config.path]
E bad.yaml:1:41: outboxes.a.source: a source has 1 to 120 bytes (choose another one) [config.name]
~ .*
[2]
# One outbox for one file, whatever it is called, and never the store's.
$ ln -s shop.db link.db; printf 'store: sqlite:jobs.db\noutboxes: {a: {file: shop.db}, b: {file: ./x/../shop.db}, c: {file: "sqlite:link.db"}, d: {file: jobs.db}}\n' > bad.yaml; mkdir x; holdfast check --config bad.yaml
~ E bad.yaml:2:\d+: outboxes.b.file: it is the file of the outbox `a` \(one outbox is enough for a file\) \[config.path\]
~ E bad.yaml:2:\d+: outboxes.c.file: it is the file of the outbox `a` .*
~ E bad.yaml:2:\d+: outboxes.c.file: it is the file of the outbox `b` .*
~ E bad.yaml:2:\d+: outboxes.d.file: it is the store's file \(name the application's own file\) \[config.path\]
~ .*
[2]
# A message over the limit leaves its beginning: not to be redriven as it stands [S0.20].
$ echo "INSERT INTO holdfast_outbox(type, payload) VALUES ('nop', zeroblob(65537))" | python3 sql.py
1
$ holdfast run --until-idle 2> log > out; holdfast dead list --json
~ .*"id":2,.*"payload_bytes":65536,"payload_cut":true.*
$ holdfast dead show 2
...
~ payload +65536 bytes, cut: the rest is lost
...
$ holdfast dead redrive 2 --actor ada --dry-run
dead letter 2 needs a whole payload: its own is cut
0 would be redriven, 1 refused
[4]
$ holdfast dead redrive 2 --actor ada
! holdfast: dead letter: 2 holds the beginning of its payload alone, which was over the limit (bring the whole one, with --payload or --file and --new-key)
[4]
$ holdfast dead redrive 2 --actor ada --payload short --new-key
dead letter 2 redriven as job 2
