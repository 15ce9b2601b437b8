# How a downstream is reached: every bad value is told with its place and a fix, and no secret shows.
file broken.pem
-----BEGIN PRIVATE KEY-----
MIIB
-----END PRIVATE KEY-----
end
file broken-cert.pem
-----BEGIN CERTIFICATE-----
MIIB
-----END CERTIFICATE-----
end
$ for n in cert other; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=a -keyout $n.key -out $n.pem 2>/dev/null || exit; done; mv cert.key key.pem
$ openssl pkey -in key.pem -aes128 -passout pass:hush -out locked.pem && openssl ec -in key.pem -aes128 -passout pass:hush -out locked-too.pem 2>/dev/null
setenv HTTP_PROXY_OF_OURS http://me:hush@proxy.example:3128
file good.yaml
downstreams:
  a: {url: https://a, ca_file: cert.pem, client_cert: cert.pem, client_key: key.pem, tls_min: 1.3, http2: true}
  b: {url: http://b, proxy: "${HTTP_PROXY_OF_OURS}", redirects: {max: 5, other_hosts: true}}
end
$ holdfast check --config good.yaml
...
good.yaml: 0 errors, 0 warnings

# Files stand beside the configuration.
$ mkdir sub && mv good.yaml cert.pem sub && holdfast check --config sub/good.yaml
E sub/good.yaml:2:77: downstreams.a.client_key: sub/key.pem: it cannot be read: No such file or directory (give a readable PEM file with the key, without a passphrase) [config.downstream]
...
sub/good.yaml: 1 error, 0 warnings
[2]
$ mv sub/cert.pem .

file typed.yaml
downstreams:
  a: {url: https://a, tls_min: 1.1}
  b: {url: https://b, proxy: "${NO_SUCH_PROXY}"}
  c: {url: https://c, redirects: {max: 6}}
  d: {url: https://d, http2: yes}
end
$ holdfast check --config typed.yaml
E typed.yaml:2:32: downstreams.a.tls_min: `1.1` is none of 1.2|1.3 (did you mean `1.2`?) [config.choice]
E typed.yaml:3:30: downstreams.b.proxy: the environment variable NO_SUCH_PROXY is not set (set it, or write the value out) [config.secret]
E typed.yaml:4:40: downstreams.c.redirects.max: 6 is not within 0 and 5 (stay inside) [config.range]
E typed.yaml:5:30: downstreams.d.http2: `yes` is neither true nor false (write true or false) [config.type]
typed.yaml: 4 errors, 0 warnings
[2]

file bad.yaml
downstreams:
  a: {url: https://a, ca_file: none.pem}
  b: {url: https://b, ca_file: key.pem}
  c: {url: https://c, client_cert: cert.pem}
  d: {url: https://d, client_cert: cert.pem, client_key: locked.pem}
  e: {url: http://e, client_cert: cert.pem, client_key: key.pem}
  f: {url: http://f, http2: true}
  h: {url: https://h, proxy: "socks5://me:hush@p:1"}
  i: {url: https://i, proxy: "http://me:hush@p"}
  l: {url: https://l, redirects: {other_hosts: true}}
  m: {url: https://m, ca_file: .}
  n: {url: https://n, client_cert: cert.pem, client_key: locked-too.pem}
  o: {url: https://o, client_cert: cert.pem, client_key: broken.pem}
  p: {url: https://p, client_cert: cert.pem, client_key: other.key}
  q: {url: https://q, client_cert: broken-cert.pem, client_key: key.pem}
end
$ holdfast check --config bad.yaml
E bad.yaml:2:32: downstreams.a.ca_file: none.pem: it cannot be read: No such file or directory (give a readable PEM file with BEGIN CERTIFICATE) [config.downstream]
E bad.yaml:3:32: downstreams.b.ca_file: key.pem: there is no certificate in it (give a readable PEM file with BEGIN CERTIFICATE) [config.downstream]
E bad.yaml:4:36: downstreams.c.client_cert: there is no client_key, and the certificate and its key belong together (give both, they may be one file) [config.downstream]
E bad.yaml:5:58: downstreams.d.client_key: locked.pem: the key has a passphrase (give a readable PEM file with the key, without a passphrase) [config.downstream]
E bad.yaml:6:35: downstreams.e.client_cert: the url is http, which shows no certificate to anybody (write the url as https://, or leave client_cert out) [config.downstream]
E bad.yaml:7:29: downstreams.f.http2: the url is http; both ends agree on HTTP/2 within TLS only (write the url as https://, or leave http2 out) [config.downstream]
E bad.yaml:8:30: downstreams.h.proxy: it does not start with http:// (write it as http://[user:password@]host:port) [config.downstream]
E bad.yaml:9:30: downstreams.i.proxy: it has no port (write it as http://[user:password@]host:port) [config.downstream]
E bad.yaml:10:48: downstreams.l.redirects.other_hosts: with redirects.max 0 none is followed (set redirects.max, or leave other_hosts out) [config.downstream]
E bad.yaml:11:32: downstreams.m.ca_file: .: it is not a file (give a readable PEM file with BEGIN CERTIFICATE) [config.downstream]
E bad.yaml:12:58: downstreams.n.client_key: locked-too.pem: the key has a passphrase (give a readable PEM file with the key, without a passphrase) [config.downstream]
~ E bad.yaml:13:58: downstreams.o.client_key: broken.pem: the key in it cannot be decoded: .+ \(give a readable PEM file with the key, without a passphrase\) \[config.downstream\]
E bad.yaml:14:58: downstreams.p.client_key: other.key with client_cert cert.pem: it is not the key of the first certificate there (give the key that the certificate was made for; in a chain its certificate comes first) [config.downstream]
~ E bad.yaml:15:36: downstreams.q.client_cert: broken-cert.pem: certificate 1 in it cannot be decoded: .+ \(give a readable PEM file with BEGIN CERTIFICATE\) \[config.downstream\]
...
bad.yaml: 14 errors, 0 warnings
[2]

# A start refuses the same with the same words.
$ printf 'downstreams: {a: {url: "https://127.0.0.1:1", client_cert: cert.pem, client_key: gone.pem}}\n' > s.yaml; holdfast call a --config s.yaml
! holdfast: a: client_key gone.pem: it cannot be read: No such file or directory (give a readable PEM file with the key, without a passphrase)
[2]
$ printf 'downstreams: {a: {url: "https://127.0.0.1:1", client_cert: cert.pem, client_key: other.key}}\n' > s.yaml; holdfast call a --config s.yaml
! holdfast: a: client_key other.key with client_cert cert.pem: it is not the key of the first certificate there (give the key that the certificate was made for; in a chain its certificate comes first)
[2]

# What the environment or a file gave is not shown when it is no URL: it may be another secret by mistake. One complaint each.
setenv NOT_A_URL hush-hush
file urls.yaml
downstreams:
  a: {url: "${NOT_A_URL}"}
  b: {url: "https://h/${NOT_A_URL} x"}
  c: {url: "file:hush.txt"}
  d: {url: "${NO_SUCH_URL}"}
  e: {url: "ftp://me:hush@h"}
  f: {url: HTTPS://Example.org, probe: {path: /a?b}}
end
$ echo hush-hush > hush.txt; holdfast check --config urls.yaml
E urls.yaml:5:12: downstreams.d.url: the environment variable NO_SUCH_URL is not set (set it, or write the value out) [config.secret]
E urls.yaml:2:12: downstreams.a.url: its value is not an http or https URL without query (write https://host[:port][/path]) [config.url]
E urls.yaml:3:12: downstreams.b.url: its value is not an http or https URL without query (write https://host[:port][/path]) [config.url]
E urls.yaml:4:12: downstreams.c.url: its value is not an http or https URL without query (write https://host[:port][/path]) [config.url]
E urls.yaml:6:12: downstreams.e.url: `ftp://h` is not an http or https URL without query (write https://host[:port][/path]) [config.url]
E urls.yaml:7:47: downstreams.f.probe.path: `/a?b` is not a path (begin it with /, without query) [config.path]
urls.yaml: 6 errors, 0 warnings
[2]
