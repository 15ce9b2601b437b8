# RFC 9110 10.2.3: seconds and the three forms of a date; what is none of them gives none.
$ holdfast retry-after 120
120000
$ holdfast retry-after 0
0
$ holdfast retry-after 'Fri, 31 Dec 1999 23:59:59 GMT' --now 1999-12-31T23:59:00Z
59000
$ holdfast retry-after 'Friday, 31-Dec-99 23:59:59 GMT' --now 1999-12-31T23:59:00+00:00
59000
$ holdfast retry-after 'Fri Dec 31 23:59:59 1999' --now 1999-12-31T23:59:00Z
59000
$ holdfast retry-after 'Fri, 31 Dec 1999 23:59:59 GMT' --now 2000-01-01T00:00:00Z
0
$ holdfast retry-after soon
none
$ holdfast retry-after -- -5
none
$ holdfast retry-after 1.5 --json
{"wait_ms":null}
$ holdfast retry-after 7 --json
{"wait_ms":7000}
$ holdfast retry-after 7 --now 2000-01-01T00:00:00
! holdfast: now: `2000-01-01T00:00:00` is not a time of RFC 3339 with a zone (write TIME or 2026-11-30T11:05:00+01:00)
[2]
