# SPDX-License-Identifier: MIT
"""A scripted SMTP server: each dialogue on a thread of its own, every answer can be another one, hang or be cut."""
import base64
import socket
import threading


class Smtp:
    """`odd` maps a command to an answer, to 'hang' or to 'cut'; a list has one for each time. `mail` is the last message."""

    def __init__(self, odd=None, tls=None, offers=(), secret=None, took=None):
        self.odd, self.heard, self.mail, self.took = odd or {}, [], None, took
        self.tls, self.offers, self.secret, self.safe = tls, list(offers), secret, []
        self.socket = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.kept, self.talks = [], threading.Condition()
        self.open = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer, _ = self.socket.accept()
            self.kept.append(peer)
            with self.talks:
                self.open += 1
            threading.Thread(target=self.meet, args=(peer,), daemon=True).start()

    def meet(self, peer):
        try:
            self.talk(peer, peer.makefile('rb'))
        except OSError:
            pass
        with self.talks:
            self.open -= 1
            self.talks.notify_all()

    def quiet(self):
        """Waits until everybody has hung up."""
        with self.talks:
            self.talks.wait_for(lambda: self.open == 0, timeout=60)

    def say(self, peer, stage, answer):
        odd = self.odd.get(stage, answer)
        if isinstance(odd, list):
            odd = odd.pop(0) if odd else answer
        if odd == 'hang':
            return False
        if odd == 'cut':
            peer.shutdown(socket.SHUT_RDWR)
            return False
        peer.sendall(odd.encode() + b'\r\n')
        return True

    def auth(self, peer, lines):
        peer.sendall(b'334 \r\n')
        given = base64.b64decode(lines.readline()).decode().split('\0')[1:]
        return '235 welcome' if given == self.secret else '535 no'

    def talk(self, peer, lines):
        if not self.say(peer, 'greeting', '220 mail.example ESMTP'):
            return
        safe = False
        while True:
            line = lines.readline().decode()
            if not line:
                peer.close()
                return
            (self.safe if safe else self.heard).append(line.strip())
            word = line.split()[0].upper()
            offers = [offer for offer in self.offers if not safe or offer != 'STARTTLS']
            answer = {'EHLO': '\r\n'.join('250-' + offer for offer in ['mail.example'] + offers) + '\r\n250 8BITMIME',
                      'DATA': '354 go on', 'QUIT': '221 bye', 'STARTTLS': '220 go on'}.get(word, '250 ok')
            if not self.say(peer, word, self.auth(peer, lines) if word == 'AUTH' else answer):
                return
            if word == 'STARTTLS':
                peer = self.tls.wrap_socket(peer, server_side=True)
                self.kept.append(peer)
                lines, safe = peer.makefile('rb'), True
            if word == 'DATA' and 'DATA' not in self.odd:
                text = b''
                while not text.endswith(b'\r\n.\r\n'):
                    more = lines.readline()
                    if not more:  # it was killed
                        peer.close()
                        return
                    text += more
                self.mail = text[:-3].decode('ascii')
                if self.took:
                    self.took(self.mail)
                if not self.say(peer, 'body', '250 queued'):
                    return
            if word == 'QUIT':
                peer.close()
                return
