# Dead letters on their way out and in again: byte for byte, known the second time, nothing of a file with a wrong line.
file holdfast.yaml
store: sqlite:jobs.db
node: {name: n1}
jobs:
  bad: {kind: exec, command: [/bin/sh, -c, "printf 'a\\033[31m\\377<script>' >&2; exit 65"]}
end
$ printf 'x\0y\377' > bytes
$ holdfast enqueue bad --file bytes
1
$ holdfast enqueue bad plain
2
$ holdfast run --until-idle --workers 1 2> log
2 executions: 0 succeeded, 0 to be retried, 2 dead, 0 given back, 0 kept back; 0 quarantined; 0 attempts
$ holdfast dead export > letters; wc -l < letters
2
$ head -1 letters
~ \{"id":1,"job_id":1,"death_no":1,"status":"dead","class":"permanent","type":"bad",.*"payload_base64":"eAB5/w==",.*"origin":"UUID-1",.*
$ holdfast dead import letters --actor ada
0 imported, 2 were there already
# I65, I66, S4.10: hostile text of a child is shown, not sent to the terminal.
$ holdfast dead show 1 | grep -c "$(printf '\033')"
0
[1]
# Another store takes them in, once; a redrive there has the same bytes and the same key.
$ holdfast --store sqlite:other.db dead import - --actor ada --json < letters
{"imported":2,"existed":0}
$ cat letters letters | holdfast --store sqlite:other.db dead import
0 imported, 4 were there already
# The same through a pipe that has a name: all of it is taken in, or the error said.
$ cat letters | holdfast --store sqlite:pipe.db dead import /dev/stdin --actor ada
2 imported, 0 were there already
$ mkfifo pipe; cat letters > pipe & holdfast --store sqlite:fifo.db dead import pipe --actor ada
2 imported, 0 were there already
$ mkdir dir; holdfast --store sqlite:fifo.db dead import dir
~! holdfast: dir: .* \(check the path\)
[2]
$ holdfast --store sqlite:other.db dead redrive 1 --actor ada
dead letter 1 redriven as job 1
$ holdfast --store sqlite:other.db job show 1 --json | grep -o '"idempotency_key":"[^"]*"\|"payload_base64":"[^"]*"' | sort > there; grep -o '"idempotency_key":"[^"]*"\|"payload_base64":"[^"]*"' letters | head -2 | sort | diff - there
# One wrong line, and nothing of the file is taken in.
$ sed '2s/"class":"permanent"/"class":"odd"/' letters > wrong; echo '{"type":7}' >> wrong; echo 'no json' >> wrong
# One of this store that does not go with its job: a death to come would be taken for it.
$ cat letters letters > more; head -1 letters | sed 's/"death_no":1/"death_no":2/; s/\("origin":"[^"]*\)-1"/\1-900"/' >> more; holdfast dead import more
~! holdfast: more:5: death_no: job \d has died 1 times here, not 2 \(leave it to the store that it died in\)
! holdfast: 0 were imported before it; import the file again, those are known then
[2]
$ holdfast --store sqlite:third.db dead import wrong
! holdfast: wrong:2: class: missing or unknown (take the line as `dead export` wrote it)
! holdfast: wrong:3: type: it has to be a text (write it in quotes)
~! holdfast: wrong:4: line: .* \(write one JSON object a line\)
! holdfast: nothing was imported: 3 lines are wrong
[2]
$ holdfast --store sqlite:third.db dead list --json
{"items":[],"next":null}
# Parts of 100: where the store fails in the third one, two are kept, it is said so, and the same file goes on without doubles (I75).
$ for i in $(seq 250); do head -1 letters | sed "s/\(\"origin\":\"\)[^\"]*/\1elsewhere-$i/; s/\"job_id\":1/\"job_id\":null/"; done > many; wc -l < many
250
$ : | holdfast --store sqlite:parts.db dead import
0 imported, 0 were there already
$ python3 -c "import sqlite3; d = sqlite3.connect('parts.db'); d.execute('CREATE TRIGGER no BEFORE INSERT ON dead_letters WHEN NEW.origin = \'elsewhere-230\' BEGIN SELECT RAISE(ABORT, \'no\'); END')"
$ holdfast --store sqlite:parts.db dead import many --actor ada
~! \{.*"event":"store.rollback".*
~! holdfast: .*parts.db: no .*
! holdfast: 200 were imported before it; import the file again, those are known then
[4]
$ python3 -c "import sqlite3; d = sqlite3.connect('parts.db'); print(d.execute('SELECT count(*), count(DISTINCT origin) FROM dead_letters').fetchone()); d.execute('DROP TRIGGER no')"
(200, 200)
$ holdfast --store sqlite:parts.db dead import many --actor ada
50 imported, 200 were there already
$ holdfast --store sqlite:parts.db dead import many --actor ada
0 imported, 250 were there already
$ python3 -c "import sqlite3; d = sqlite3.connect('parts.db'); print(d.execute('SELECT count(*), count(DISTINCT origin) FROM dead_letters').fetchone())"
(250, 250)
