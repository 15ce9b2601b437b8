# What must be refused at the door, with the exit code of its kind.
$ holdfast enqueue
! holdfast: enqueue: it needs a type (holdfast enqueue TYPE [PAYLOAD])
[2]
$ holdfast enqueue t --expires-in 0s
! holdfast: expires-in: `0s` is no time at all (leave it out for none)
[2]
$ holdfast downstream isolate d --for 0ms --reason r
! holdfast: for: `0ms` is no time at all (leave it out for none)
[2]
$ holdfast call d --timeout 0s
! holdfast: timeout: `0s` is no time at all (leave it out for none)
[2]
$ holdfast enqueue t --in 5
! holdfast: in: `5` is not a duration with a unit (write 250ms, 5s, 2m, 1h or 7d)
[2]
$ holdfast enqueue t --in 1s --at 2030-01-01T00:00:00Z
! holdfast: enqueue: --in and --at are both given (give one of them)
[2]
$ holdfast enqueue t --priority 10
! holdfast: priority: `10` is not a whole number from 0 to 9
[2]
$ holdfast enqueue t --max-executions 0
! holdfast: max-executions: `0` is not a whole number from 1 to 10000
[2]
$ holdfast enqueue t --curve '1s,,2s'
! holdfast: curve: `1s,,2s` is not a list of durations (write "60s,5m,30m", 64 waits at most)
[2]
$ holdfast enqueue t --limit tenant
! holdfast: limit: `tenant` is not NAME:KEY (write tenant:42)
[2]
$ holdfast enqueue t --queue "$(printf 'a\377b')"
! holdfast: queue: the value is not valid UTF-8 text
[2]
$ holdfast enqueue "$(printf 'a\377b')"
~! holdfast: .*type.*UTF-8.*
[2]
$ holdfast enqueue ''
~! holdfast: .*type.*
[2]
$ head -c 65537 /dev/zero | holdfast enqueue t -
~! holdfast: .*payload.*65537.*65536.*
[2]
$ head -c 65536 /dev/zero | holdfast enqueue t -
1
$ holdfast enqueue t --file nowhere
! holdfast: nowhere: No such file or directory (check the path)
[2]
$ truncate -s 1073741825 large; holdfast enqueue t --file large
! holdfast: large: it is larger than 1 GiB (hand on where it is instead)
[2]
$ rm large
$ holdfast enqueue t --correlation 12345678901234567890123456789012345678901234567890123456789012345
~! holdfast: .*correlation.*64.*
[2]

# Stores: S3.22 first, then files that are not ours, and folders that cannot be written.
$ holdfast enqueue t --store ''
! holdfast: store: its value is empty (set the variable it comes from, or leave the flag out)
[2]
$ holdfast enqueue t --store nonsense:x
~! holdfast: .*nonsense.*
[2]
$ echo 'this is no database at all, but a text of some length' > foreign.db; holdfast enqueue t --store sqlite:foreign.db
~! holdfast: .*foreign.db.*
[1]
$ cat foreign.db
this is no database at all, but a text of some length
$ holdfast enqueue t --store sqlite:foreign.db/x.db
~! holdfast: .*foreign.db/x.db.*
[1]
$ holdfast enqueue t --store sqlite:no/such/folder/x.db
~! holdfast: .*no/such/folder.*
[3]
$ python3 -c "import sqlite3; d = sqlite3.connect('other.db'); d.execute('create table t(x)'); d.commit()"; holdfast job list --store sqlite:other.db
~! holdfast: .*other.db.*
[1]
$ cp holdfast.db newer.db; python3 -c "import sqlite3; d = sqlite3.connect('newer.db'); d.execute('update meta set value = 99 where key = \'min_writer\''); d.commit()"; holdfast enqueue t --store sqlite:newer.db
~! holdfast: .*99.*
[1]
