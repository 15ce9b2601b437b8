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
# S0.5: every number of the chain is looked at, any transient one wins.
$ holdfast classify mssql 50000 1205 --json
~ .*"class":"transient".*"error_type":"mssql.1205".*
$ holdfast classify mysql 1213 --json
~ .*"class":"transient".*"error_type":"mysql.1213".*
$ holdfast classify exit 75 --json
~ .*"class":"transient".*"error_type":"exit.75".*
$ holdfast classify exit 65 --json
~ .*"class":"permanent".*"error_type":"exit.65".*
$ holdfast classify signal SIGKILL --json
~ .*"class":"transient".*"error_type":"signal.SIGKILL".*
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
! holdfast: exit: `256` is not known there (write a status from 0 to 255)
[2]
$ holdfast classify http 200 201
! holdfast: classify: `201` is one argument too many
[2]
