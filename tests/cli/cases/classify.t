# The verdicts of the library's tables and the rule that decided (2.2).
$ holdfast classify http 503
outcome            failure
class              transient
retry              now
breaker            failure
rule               http.5xx
error type         http.503
message            the peer answered 503
stage              receive
sent               yes
may repeat         yes
$ holdfast classify http 404 --json
{"outcome":"failure","class":"permanent","retry":"none","breaker":"neutral","rule":"http.4xx","error_type":"http.404","message":"the peer answered 404","stage":"receive","sent":"yes","retry_after_ms":null,"may_repeat":true}
$ holdfast classify http 429 --retry-after 120 --json
~ .*"class":"transient",.*"breaker":"neutral",.*"retry_after_ms":120000.*
$ holdfast classify http 503 --method POST --explain
...
retry              now: not within this call: the method is not safe to repeat, there is no key, and it may have been sent
...
may repeat         no
...
$ holdfast classify curl CURLE_COULDNT_CONNECT --method POST --json
~ .*"error_type":"curl.couldnt_connect",.*"sent":"no".*"may_repeat":true\}
$ holdfast classify curl 28 --sent maybe --method POST --key --json
~ .*"sent":"maybe".*"may_repeat":true\}
$ holdfast classify errno ECONNREFUSED --json
~ .*"class":"transient".*"error_type":"errno.ECONNREFUSED".*
$ holdfast classify sqlite 5 --json
~ .*"class":"transient".*"error_type":"sqlite.BUSY".*
$ holdfast classify sqlstate 40P01 --json
~ .*"class":"transient".*"error_type":"sql.40P01".*
$ holdfast classify sqlstate 0A000 --json
~ .*"class":"permanent".*"rule":"sql.0A".*
$ holdfast classify sqlstate 0A000 --text "ERROR:  cached plan must not change result type" --json
~ .*"class":"transient".*"rule":"sql.0A000.plan".*
$ holdfast classify sqlstate 23505 40P01 --json
~ .*"class":"transient".*"rule":"sql.40P01".*
# S0.5: every number of the chain is looked at, any transient one wins.
$ holdfast classify mssql 50000 1205 --json
~ .*"class":"transient".*"error_type":"mssql.1205".*
$ holdfast classify mysql 1213 --json
~ .*"class":"transient".*"error_type":"mysql.1213".*
$ holdfast classify mysql 1062 1213 --json
~ .*"class":"transient".*"error_type":"mysql.1213".*
$ holdfast classify smtp 450 --json
~ .*"class":"transient","retry":"later","breaker":"neutral","rule":"smtp.4yz".*
$ holdfast classify smtp 550 --json
~ .*"class":"permanent","retry":"none","breaker":"neutral","rule":"smtp.5yz".*
$ holdfast classify exit 75 --json
~ .*"class":"transient".*"error_type":"exit.75".*
$ holdfast classify exit 65 --json
~ .*"class":"permanent".*"error_type":"exit.65".*
$ holdfast classify signal SIGKILL --json
~ .*"class":"transient".*"error_type":"signal.SIGKILL".*
# A lone interim status (S0.3).
$ holdfast classify http 101 --json
~ .*"class":"transient".*"rule":"http.1xx".*
$ holdfast classify http 302 --json
~ .*"class":"permanent".*"breaker":"neutral","rule":"http.3xx".*

# --explain shows the row that decided and those before it; --table all of them.
$ holdfast classify http 429 --explain
...
table              http: Statuses of HTTP answers. Source: RFC 9110 section 15, RFC 6585, RFC 8470
row 1              no: 429 without Retry-After is not 200-299 [http.2xx]
row 2              no: 429 without Retry-After is not 408 [http.408]
row 3              no: 429 without Retry-After is not 421 [http.421]
row 4              no: 429 without Retry-After is not 425 [http.425]
row 5              no: 429 without Retry-After is not 429 with Retry-After [http.429.retry_after]
row 6              yes: 429 [http.429]: `breaker_429` may make it a failure
$ holdfast classify curl 28 --explain
...
row 29             yes: 28 CURLE_OPERATION_TIMEDOUT [curl.28]
other rows         not asked: each has its own
$ holdfast classify mysql 1062 1213 --explain
...
chain              2 errors; 1213 decides: any transient match wins, then any permanent one
...
$ holdfast classify --table smtp
## smtp
...
The reply that ended an SMTP transaction. The first row that matches decides.
Source: RFC 5321 4.2.

| match | class | retry | breaker | stage | sent | rule | why |
|---|---|---|---|---|---|---|---|
| 200-299 | ok | none | success | wait | yes | `smtp.2yz` |  |
...
$ holdfast classify --table smtp --json
~ \{"items":\[\{"table":"smtp","match":"200-299","outcome":"success",.*"source":"RFC 5321 4.2"\}\],"next":null\}
$ holdfast classify --table htp
! holdfast: classify: `htp` is no table (did you mean `http`?)
[2]
$ holdfast classify http 5 --table
! holdfast: classify: --table and `http` exclude each other
[2]
$ holdfast classify
! holdfast: classify: it needs a form and what it gave, or --table (see holdfast help classify)
[2]
$ holdfast classify http
! holdfast: classify: what http gave is missing (see holdfast help classify)
[2]
# Numbers that nobody ever gives, of each form.
$ for s in 99 0 -1 600 1000; do holdfast classify http $s; done
! holdfast: http: 99 is not within 100 and 599 (write a status from 100 to 599)
! holdfast: http: 0 is not within 100 and 599 (write a status from 100 to 599)
! holdfast: http: -1 is not within 100 and 599 (write a status from 100 to 599)
! holdfast: http: 600 is not within 100 and 599 (write a status from 100 to 599)
! holdfast: http: 1000 is not within 100 and 599 (write a status from 100 to 599)
[2]
$ for s in 99 199 600; do holdfast classify smtp $s; done
! holdfast: smtp: 99 is not within 200 and 599 (write a reply from 200 to 599)
! holdfast: smtp: 199 is not within 200 and 599 (write a reply from 200 to 599)
! holdfast: smtp: 600 is not within 200 and 599 (write a reply from 200 to 599)
[2]
$ holdfast classify signal 0; holdfast classify signal 65; holdfast classify errno -1; holdfast classify errno 4096
! holdfast: signal: 0 is not within 1 and 64 (write a name such as SIGKILL)
! holdfast: signal: 65 is not within 1 and 64 (write a name such as SIGKILL)
! holdfast: errno: -1 is not within 0 and 4095 (write a name such as ECONNREFUSED)
! holdfast: errno: 4096 is not within 0 and 4095 (write a name such as ECONNREFUSED)
[2]
$ holdfast classify curl -1; holdfast classify sqlite 2147483648; holdfast classify mysql -5; holdfast classify mssql -2147483649
! holdfast: curl: -1 is not within 0 and 2147483647 (write 28 or CURLE_OPERATION_TIMEDOUT)
! holdfast: sqlite: 2147483648 is not within 0 and 2147483647 (write a result code such as 5)
! holdfast: mysql: -5 is not within 0 and 2147483647 (write the number)
! holdfast: mssql: -2147483649 is not within -2147483648 and 2147483647 (write the number)
[2]
$ holdfast classify mssql -2 --json
~ .*"class":"transient".*
$ holdfast classify htp 5
! holdfast: classify: `htp` is no form (did you mean `http`?)
[2]
$ holdfast classify http 5x
! holdfast: http: `5x` is not known there (write a status from 100 to 599)
[2]
$ holdfast classify errno ENONSENSE
! holdfast: errno: `ENONSENSE` is not known there (write a name such as ECONNREFUSED)
[2]
$ holdfast classify curl CURLE_NONSENSE
! holdfast: curl: `CURLE_NONSENSE` is not known there (write 28 or CURLE_OPERATION_TIMEDOUT)
[2]
$ holdfast classify sqlstate 40p
! holdfast: sqlstate: `40p` is not known there (write five digits or capital letters, such as 40P01)
[2]
$ holdfast classify exit 256
! holdfast: exit: 256 is not within 0 and 255 (write a status from 0 to 255)
[2]
$ holdfast classify http 200 201
! holdfast: classify: `201` is one argument too many
[2]
