# Wrong usage: exit code 2 and what was probably meant.
$ holdfast
! holdfast: command: none given (see holdfast --help)
[2]
$ holdfast chek
! holdfast: chek: unknown command (did you mean `check`?)
[2]
$ holdfast zzzzzz
! holdfast: zzzzzz: unknown command (see holdfast --help)
[2]
$ holdfast check --explian
! holdfast: --explian: unknown flag (did you mean `--explain`?)
[2]
$ holdfast check -x
! holdfast: -x: unknown flag (see holdfast check --help)
[2]
$ holdfast check --json=yes
! holdfast: json: it takes no value, but `yes` was given
[2]
$ holdfast check --config
! holdfast: config: it needs a value: --config FILE
[2]
$ holdfast check --config a --config b
! holdfast: config: it is given twice (give it once)
[2]
$ holdfast check --color=rde
! holdfast: color: `rde` is none of auto|always|never
[2]
$ holdfast check extra
! holdfast: check: `extra` is one argument too many (holdfast check)
[2]
$ holdfast retry-after
! holdfast: retry-after: it needs 1 argument, 0 given (holdfast retry-after VALUE)
[2]
$ holdfast help nothing
! holdfast: nothing: unknown command (see holdfast --help)
[2]
$ holdfast help --json
! holdfast: help: it has nothing to print as JSON (leave --json out)
[2]
$ holdfast --version
~ holdfast \d+\.\d+\.\d+
# What cannot be printed is a failure, not silence.
$ holdfast check --explain > /dev/full
! holdfast: output: No space left on device (free some space, or read all of it)
[1]
$ i=0; while [ $i -lt 30 ]; do echo '{"type":"t"}'; i=$((i + 1)); done | holdfast enqueue --ndjson --quiet; holdfast job list --json > /dev/full
! holdfast: output: No space left on device (free some space, or read all of it)
[1]
$ holdfast retry-after 5 >&-
! holdfast: output: Bad file descriptor (free some space, or read all of it)
[1]

# A closed stdin is not an empty payload: nothing else may get its number.
$ holdfast enqueue t - <&-
! holdfast: -: Bad file descriptor (check the file)
[2]

# An empty value is a variable that is not set: it must not widen what is asked for [S3.22].
$ holdfast dead redrive --type "$UNSET" --actor ada
! holdfast: type: its value is empty (set the variable it comes from, or leave the flag out)
[2]
$ holdfast enqueue t --unique="$UNSET"
! holdfast: unique: its value is empty (set the variable it comes from, or leave the flag out)
[2]
$ holdfast job list --queue ''
! holdfast: queue: its value is empty (set the variable it comes from, or leave the flag out)
[2]

# What a request cannot carry is not sent.
$ printf 'downstreams: {s: {url: "http://127.0.0.1:9"}}\n' > call.yaml; holdfast call s '/a b' --config call.yaml
! holdfast: path: it holds a space, a control character, a byte outside ASCII, ? or # (percent-encode it, and give the query as query)
[2]
$ holdfast call s / --header 'Content-Length: 9' --config call.yaml
! holdfast: Content-Length: the header is set by holdfast itself (leave it out)
[2]
