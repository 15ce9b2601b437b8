#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers for the transport's tests, with certificates made on the spot in the folder DIR (its only argument).

Prints `NAME PORT` a line for each server, then `ready`. Answers on stdin: `count NAME` -> connections, requests and
answered CONNECTs; `last NAME` -> length and bytes of the newest request; `chatter NAME` -> `done`, once frames that nobody
asked for are out on the connection of its newest request. Ends with its stdin. Every request is counted when its last byte was read: the truth that reports are compared with.
"""
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.parse

LOCK = threading.Lock()


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=" + name, "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem")


def make_certificate(folder, name, authority, names="DNS:localhost,IP:127.0.0.1", expired=False):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
            "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.csr")
    with open(f"{folder}/{name}.ext", "w", encoding="ascii") as extensions:
        extensions.write("subjectAltName=" + names + "\n")
    openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/{authority}.pem", "-CAkey",
            f"{folder}/{authority}.key", "-CAcreateserial", "-days", "-1" if expired else "2",
            "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")


def make_all(folder):
    make_authority(folder, "ca")
    make_authority(folder, "ca2")
    make_certificate(folder, "good", "ca")
    make_certificate(folder, "unknown", "ca2")
    make_certificate(folder, "expired", "ca", expired=True)
    make_certificate(folder, "wronghost", "ca", names="DNS:other.test")
    for client in ("client-a", "client-b"):
        make_certificate(folder, client, "ca")
    make_certificate(folder, "client-x", "ca2")
    openssl("pkey", "-in", f"{folder}/client-a.key", "-aes128", "-passout", "pass:x", "-out", f"{folder}/locked.key")


def drain(connection):
    """Reads what is on its way: a reset would overtake the alert that says why the handshake failed."""
    connection.settimeout(10)
    socket.socket.shutdown(connection, socket.SHUT_WR)
    while socket.socket.recv(connection, 65536):
        pass


class Peer:
    def __init__(self, name, serve, context=None, **options):
        self.name, self.serve, self.context, self.options = name, serve, context, options
        self.connections = self.requests = self.tunnels = 0
        self.last = b""
        self.chatter, self.chattered = threading.Semaphore(0), threading.Semaphore(0)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            with LOCK:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self.run, args=(connection, number), daemon=True).start()

    def run(self, connection, number):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                try:
                    connection.do_handshake()
                except ssl.SSLError:
                    drain(connection)
                    raise
            self.serve(self, connection, number)
        except (OSError, ValueError, EOFError):
            pass
        finally:
            connection.close()

    def took(self, request):
        with LOCK:
            self.requests += 1
            self.last = request


def read_head(connection, buffer):
    while b"\r\n\r\n" not in buffer:
        part = connection.recv(65536)
        if not part:
            raise EOFError
        buffer += part
    end = buffer.index(b"\r\n\r\n") + 4
    return buffer[:end], buffer[end:]


def header(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return b""


def common_name(connection):
    certificate = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return value
    return "-"


def answer(connection, status, text, *headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(text)}", *headers, "", text]
    connection.sendall("\r\n".join(lines).encode())


def serve_http1(peer, connection, number):
    buffer = b""
    while True:
        head, buffer = read_head(connection, buffer)
        length = int(header(head, b"content-length") or 0)
        while len(buffer) < length:
            part = connection.recv(65536)
            if not part:
                raise EOFError
            buffer += part
        body, buffer = buffer[:length], buffer[length:]
        peer.took(head + body)
        target = head.split(b" ")[1].decode()
        if target.startswith("http://"):  # as a proxy gets it
            target = "/" + target.partition("://")[2].partition("/")[2]
        if target.startswith("/redirect/"):
            _, _, status, location = target.split("/", 3)
            answer(connection, status, "" if head.startswith(b"HEAD") else "elsewhere", "Location: " + urllib.parse.unquote(location))
        elif target.startswith("/status/"):
            answer(connection, target.split("/")[2], "so")
        elif target == "/hang":
            connection.recv(1)
            return
        elif target == "/close":
            return
        else:
            text = f"conn={number} cn={common_name(connection)}"
            answer(connection, 200, "" if head.startswith(b"HEAD") else text)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


HEADERS, RST, SETTINGS, PING, GOAWAY, DATA = 1, 3, 4, 6, 7, 0
OK_HEADERS = b"\x88"  # :status 200, HPACK's static table


def read_frame(connection, buffer):
    while len(buffer) < 9 or len(buffer) < 9 + int.from_bytes(buffer[:3], "big"):
        part = connection.recv(65536)
        if not part:
            raise EOFError
        buffer += part
    length = int.from_bytes(buffer[:3], "big")
    stream = int.from_bytes(buffer[5:9], "big") & 0x7FFFFFFF
    return buffer[3], buffer[4], stream, buffer[9:9 + length], buffer[9 + length:]


def answer_http2(peer, connection, number, nth, stream):
    """What the peer does with its nth request of this connection. False: the connection ends."""
    does = peer.options.get("does", "ok") if nth >= peer.options.get("since", 2) else "ok"
    text = f"conn={number} cn={common_name(connection)}".encode()
    if does == "ok":
        connection.sendall(frame(HEADERS, 4, stream, OK_HEADERS) + frame(DATA, 1, stream, text))
    elif does == "chatter":  # frames nobody asked for, while the connection is idle: the test says when
        connection.sendall(frame(HEADERS, 4, stream, OK_HEADERS) + frame(DATA, 1, stream, text))
        peer.chatter.acquire()
        connection.sendall(frame(PING, 0, 0, b"12345678") + frame(SETTINGS, 0, 0))
        peer.chattered.release()
    elif does == "cut":
        connection.sendall(frame(HEADERS, 4, stream, OK_HEADERS) + frame(DATA, 0, stream, b"half"))
        return False
    elif does == "close":
        return False
    elif does == "goaway":
        connection.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", stream - 2, 0)))
        return False
    else:  # the number of an RST_STREAM
        connection.sendall(frame(RST, 0, stream, struct.pack(">I", does)))
    return True


def serve_http2(peer, connection, number):
    if connection.selected_alpn_protocol() != "h2":
        serve_http1(peer, connection, number)
        return
    buffer = b""
    while len(buffer) < 24:
        part = connection.recv(65536)
        if not part:
            return
        buffer += part
    buffer, nth = buffer[24:], 0
    connection.sendall(frame(SETTINGS, 0, 0))
    while True:
        kind, flags, stream, payload, buffer = read_frame(connection, buffer)
        if kind == SETTINGS and not flags & 1:
            connection.sendall(frame(SETTINGS, 1, 0))
        if kind == PING and not flags & 1:
            connection.sendall(frame(PING, 1, 0, payload))
        if kind in (HEADERS, DATA) and flags & 1:
            nth += 1
            peer.took(payload)
            if not answer_http2(peer, connection, number, nth, stream):
                return


def pump(source, sink):
    try:
        while True:
            part = source.recv(65536)
            if not part:
                break
            sink.sendall(part)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def serve_proxy(peer, connection, _number):
    head, buffer = read_head(connection, b"")
    with LOCK:
        peer.last = head
    if not head.startswith(b"CONNECT "):
        peer.requests += 1
        answer(connection, 200, "by the proxy", "Connection: close")
        return
    refusal = peer.options.get("refusal")
    if refusal == "hang":
        connection.recv(1)
        return
    if refusal:
        answer(connection, refusal, "no", "Connection: close")
        return
    host, _, port = head.split(b" ")[1].decode().rpartition(":")
    with LOCK:
        peer.tunnels += 1
    far = socket.create_connection((host, int(port)))
    connection.sendall(b"HTTP/1.1 200 Connection established\r\nX-Proxy: secret\r\n\r\n")
    far.sendall(buffer)
    threading.Thread(target=pump, args=(far, connection), daemon=True).start()
    pump(connection, far)


def context_of(folder, name, least=None, most=None, client_ca=None, alpn=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/{name}.pem", f"{folder}/{name}.key")
    if most == ssl.TLSVersion.TLSv1_1:
        context.set_ciphers("ALL:@SECLEVEL=0")
    if least:
        context.minimum_version = least
    if most:
        context.maximum_version = most
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(f"{folder}/{client_ca}.pem")
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


def make_peers(folder):
    tls = ssl.TLSVersion
    h2 = lambda: context_of(folder, "good", alpn=["h2", "http/1.1"])
    peers = [Peer("plain", serve_http1), Peer("plain2", serve_http1)]
    for name in ("good", "unknown", "expired", "wronghost"):
        peers.append(Peer(name, serve_http1, context_of(folder, name)))
    peers += [
        Peer("good2", serve_http1, context_of(folder, "good")),
        Peer("tls12", serve_http1, context_of(folder, "good", most=tls.TLSv1_2)),
        Peer("tls11", serve_http1, context_of(folder, "good", least=tls.TLSv1, most=tls.TLSv1_1)),
        Peer("mutual12", serve_http1, context_of(folder, "good", most=tls.TLSv1_2, client_ca="ca")),
        Peer("mutual13", serve_http1, context_of(folder, "good", least=tls.TLSv1_3, client_ca="ca")),
        Peer("proxy", serve_proxy),
        Peer("proxy407", serve_proxy, refusal=407),
        Peer("proxy502", serve_proxy, refusal=502),
        Peer("proxyhang", serve_proxy, refusal="hang"),
        Peer("h2", serve_http2, h2()),
        Peer("h2-chatter", serve_http2, h2(), does="chatter", since=1),
        Peer("h2-refused", serve_http2, h2(), does=7),
        Peer("h2-refused-first", serve_http2, h2(), does=7, since=1),
        Peer("h2-internal", serve_http2, h2(), does=2),
        Peer("h2-no-error", serve_http2, h2(), does=0, since=1),
        Peer("h2-http1", serve_http2, h2(), does=13, since=1),
        Peer("h2-goaway", serve_http2, h2(), does="goaway"),
        Peer("h2-close", serve_http2, h2(), does="close"),
        Peer("h2-cut", serve_http2, h2(), does="cut", since=1),
    ]
    return peers


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    make_all(folder)
    peers = {peer.name: peer for peer in make_peers(folder)}
    for peer in peers.values():
        print(peer.name, peer.port)
    print("ready", flush=True)
    for line in sys.stdin:
        what, name = line.split()
        peer = peers[name]
        if what == "chatter":
            peer.chatter.release()
            peer.chattered.acquire()
            print("done", flush=True)
            continue
        with LOCK:
            if what == "count":
                print(peer.connections, peer.requests, peer.tunnels, flush=True)
            else:
                sys.stdout.write(f"{len(peer.last)}\n")
                sys.stdout.flush()
                sys.stdout.buffer.write(peer.last)
                sys.stdout.buffer.flush()


main()
