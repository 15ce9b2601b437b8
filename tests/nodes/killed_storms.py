# SPDX-License-Identifier: MIT
"""kill -9 at every call of the store while storms of deaths go to a webhook, a mail and a command sink, as first messages,
summaries and digests (S0.24, S0.32, C13): each death is told by each sink under one id, which may come again after a crash
and then with the same count, and no death is counted in two messages."""
import email, email.policy, json, os, re, sqlite3, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kills, reader
from smtp import Smtp

SINKS = ("hook", "mail", "file")


class Heard:
    """What the sinks were told: of each, (alert's id, deaths) in the order of arrival."""

    def __init__(self, folder):
        self.file = folder + "/told"
        self.hook, self.smtp = kills.Hook(lambda body: self.json("hook", body)), Smtp(took=self.mail)
        self.forget()

    def forget(self):
        self.told = {name: [] for name in SINKS}
        open(self.file, "w").close()

    def json(self, sink, text):
        alert = json.loads(text)
        causes = alert.get("causes")
        assert (causes is not None) == (alert["kind"] == "digest"), alert
        assert causes is None or sum(cause["deaths"] for cause in causes) == alert["deaths"], alert
        self.told[sink].append((int(alert["id"].split("-")[1]), alert["deaths"]))

    def mail(self, text):
        mail = email.message_from_string(text, policy=email.policy.default)
        body = mail.get_content()
        number = re.match(r"holdfast: (?:(job) \d+ |(\d+) more jobs? |(\d+) jobs died of )", body)
        assert number, body
        one, more, digest = number.groups()
        self.told["mail"].append((int(re.match(r"<alert-(\d+)\.", mail["Message-ID"]).group(1)), 1 if one else int(more or digest)))

    def all(self):
        self.hook.quiet()
        self.smtp.quiet()
        with open(self.file) as file:
            for line in file:
                self.json("file", line)
        return self.told


def groups(path):
    """Of each sink: how many deaths each message has to tell of, by the rows."""
    with sqlite3.connect(path, timeout=20) as db:
        rows = db.execute("SELECT id, sink, state, lead, digest FROM alerts").fetchall()
    root, wanted = {}, {name: {} for name in SINKS}
    for identity, _, _, lead, digest in rows:
        root[identity] = digest or lead or identity
    for identity, sink, state, _, _ in rows:
        at = root[identity]
        at = root[at]  # a summary that went with a digest
        assert state in (1, 3) and (state == 1) == (at == identity), (identity, sink, state, at)
        wanted[sink][at] = wanted[sink].get(at, 0) + 1
    return wanted


def check(path, heard):
    wrong = reader.broken(path, len(SINKS))
    wanted, told = groups(path), heard.all()
    deaths = reader.ask(path, "SELECT count(*) FROM dead_letters")
    for sink in SINKS:
        if sum(wanted[sink].values()) != deaths:
            wrong.append("%s: rows of %d deaths, there were %d" % (sink, sum(wanted[sink].values()), deaths))
        for identity, count in told[sink]:
            if wanted[sink].get(identity) != count:
                wrong.append("%s heard of %d deaths as alert %d, by the rows: %s" % (sink, count, identity, wanted[sink].get(identity)))
        missing = set(wanted[sink]) - {identity for identity, _ in told[sink]}
        if missing:
            wrong.append("%s never heard %s" % (sink, sorted(missing)))
    return wrong


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-killed-") as folder:
        heard, base, began = Heard(folder), folder + "/base.db", int(time.time()) + 86400

        def node(word, path, after_s, nth):
            return kills.run(word, path, heard.hook.url, heard.smtp.port, heard.file, began + after_s, nth)

        code, _ = node("causes", base, 0, 0)
        before = {name: list(messages) for name, messages in heard.all().items()}
        if code != 0 or any(len(messages) != 18 for messages in before.values()):
            print("18 causes: exit %d, %s" % (code, before))
            return 1
        digests = []

        def scenario(path, nth):
            heard.forget()
            for name in SINKS:
                heard.told[name] += before[name]
            return node("storms", path, 20, nth)

        def again(path, first):
            for hours in (1, 2, 3):
                code, second = node("storms-again", path, 3600 * hours, 0)
                if code != 0:
                    return ["the restart ended with %d: %s" % (code, second[-3:])]
                if reader.ask(path, "SELECT count(*) FROM alerts WHERE state = 0") == 0:
                    break
            digests.append(reader.ask(path, "SELECT count(*) FROM alerts WHERE digest = id"))
            return check(path, heard)
        failed = kills.sweep(scenario, again, 8, base)
        print("digests in the first run: %d" % digests[0])
        return 1 if failed or digests[0] == 0 else 0


sys.exit(main())
