"""Isolation, as the checker `adya` finds it in histories of transactions, of InnoDB, MyRocks and Pantile at each level, without kills
and across kill -9.

Three kinds of histories, each by 16 clients over few keys, transactions of one to four operations:

- lists: a row is a list, written by INSERT ... ON DUPLICATE KEY UPDATE, read by its primary key;
- registers: a row is a number, overwritten in the same way;
- rows: a list is the rows with its key in an index, so that a read is a range, and an append inserts a row into that.

`adya` makes the transactions, runs the first two by its own client of MySQL, and the third by `client` below, and kills the server
in half of the histories. At the end of each history all lists are read once more, and that read belongs to the history, too.

usage: adya.py START_SCRIPT STOP_SCRIPT ADYA DIRECTORY TRANSACTIONS SEED ENGINES...
       adya.py kill DIRECTORY                   kills the server in DIRECTORY within 1.5 seconds, and waits until it has gone
       adya.py client DIRECTORY LEVEL           runs transactions of the third kind, one a line
"""

import collections
import json
import os
import random
import shlex
import subprocess
import sys
import time

import pymysql

import servers

CLIENTS, KEYS = 16, 6
LEVELS = ["read-uncommitted", "read-committed", "repeatable-read", "serializable"]
KINDS = {"lists": "adya_lists", "registers": "adya_regs", "rows": "adya_rows"}
# What the checker may find to hold, the strongest first.
LADDER = ["strict-serializable", "serializable", "strong-snapshot-isolation", "snapshot-isolation", "repeatable-read",
          "strong-read-committed", "read-committed", "read-uncommitted"]
# What docs/isolation.md and docs/mariadb.md promise.
PROMISED = {"read-uncommitted": "strong-read-committed", "read-committed": "strong-read-committed",
            "repeatable-read": "strong-snapshot-isolation", "serializable": "strict-serializable"}
# Histories of one kind are added until as many transactions as asked for have committed, but no more than this.
MOST_HISTORIES, MOST_SECONDS = 30, 120
# The checker needs time by the square of the length of a history of registers.
LONGEST = {"registers": 2500}
# All histories, and not only those that show that Pantile breaks a promise.
KEEP = bool(os.environ.get("PANTILE_KEEP"))

Setting = collections.namedtuple("Setting", "name engine options levels kinds kills")
BINARY_LOG = ["--log-bin=binlog", "--server-id=1"]
SETTINGS = {
    "innodb": [
        Setting("InnoDB", "InnoDB", [], LEVELS, list(KINDS), [False, True]),
        Setting("InnoDB, innodb_snapshot_isolation", "InnoDB", ["--innodb-snapshot-isolation=ON"], ["repeatable-read"],
                list(KINDS), [False, True]),
        # A control: it loses what it has acknowledged, and that must be seen.
        Setting("InnoDB, flush_log_at_trx_commit=0", "InnoDB", ["--innodb-flush-log-at-trx-commit=0"],
                ["serializable"], ["lists"], [True]),
        Setting("InnoDB, binary log", "InnoDB", BINARY_LOG, ["serializable"], ["lists", "rows"], [False, True]),
    ],
    "rocksdb": [Setting("MyRocks", "ROCKSDB", ["--plugin-load-add=ha_rocksdb", "--loose-rocksdb-deadlock-detect=ON"], LEVELS,
                        list(KINDS), [False, True])],
    "pantile": [
        Setting("Pantile", "Pantile", [], LEVELS, list(KINDS), [False, True]),
        # Commits in two phases.
        Setting("Pantile, binary log", "Pantile", BINARY_LOG, ["repeatable-read", "serializable"], ["lists", "rows"], [False, True]),
    ],
}


def connect(directory, autocommit=True):
    return pymysql.connect(unix_socket=directory + "/socket", user="root", database="adya", autocommit=autocommit)


def ask(directory, statement):
    return servers.ask(connect(directory), [statement])


def kill(directory):
    """Kills the server at a moment of its own."""
    time.sleep(random.uniform(0.3, 1.5))
    with open(directory + "/pid") as file:
        process = int(file.read())
    with open(f"/proc/{process}/cmdline") as file:
        assert f"--datadir={directory}/data" in file.read().split("\0"), f"{process} is not the server in {directory}"
    servers.kill(process)


def client(directory, level):
    """Answers each transaction of standard input with how it ended."""
    connection = None
    for line in sys.stdin:
        operations = json.loads(line)["value"]
        give_up = time.monotonic() + servers.PATIENCE
        while connection is None:
            try:
                connection = connect(directory, autocommit=False)
                with connection.cursor() as cursor:
                    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL " + level.replace("-", " "))
            except pymysql.err.MySQLError:
                connection = None
                if time.monotonic() > give_up:
                    sys.exit("The server does not come back.")
                time.sleep(0.1)
        answer = {"type": "fail"}
        try:
            with connection.cursor() as cursor:
                for operation in operations:
                    what, key, value = operation
                    if what == "append":
                        cursor.execute("INSERT INTO adya_rows (k, place, v) SELECT %s, COALESCE(MAX(place), 0) + 1, %s "
                                       "FROM adya_rows WHERE k = %s", (key, value, key))
                    else:
                        cursor.execute("SELECT v FROM adya_rows WHERE k = %s ORDER BY place", (key,))
                        operation[2] = [row[0] for row in cursor.fetchall()]
                answer = {"type": "info"}
                connection.commit()
            answer = {"type": "ok", "value": operations}
        except (pymysql.err.MySQLError, OSError) as error:
            number = error.args[0] if error.args else 0
            answer["error"] = str(error)
            if number in (0, 2006, 2013) or not isinstance(number, int):
                connection.close() if connection.open else None
                connection = None
            else:
                # The server has answered, so it has not committed.
                answer["type"] = "fail"
                try:
                    connection.rollback()
                except pymysql.err.MySQLError:
                    connection = None
        print(json.dumps(answer), flush=True)


class History:
    """One history: how its transactions ended, and what the checker has found."""

    def __init__(self, path, kind):
        self.path, self.kind = path, kind
        with open(path) as file:
            self.operations = [json.loads(line) for line in file]
        ends = [operation for operation in self.operations if operation["process"] != "nemesis"]
        self.ended = collections.Counter(operation["type"] for operation in ends)
        self.kills = sum(operation.get("f") == "start-fault" and operation["value"]["ok"] for operation in self.operations)
        self.healed = sum(operation.get("f") == "stop-fault" and operation["value"]["ok"] for operation in self.operations)
        assert self.kills == self.healed, f"{path}: {self.kills} kills and {self.healed} starts"
        self.keys = sorted({part[1] for operation in ends for part in operation["value"]})

    def add_final_read(self, found):
        value = [["r", key, found.get(key, None if self.kind == "registers" else [])] for key in self.keys]
        last = self.operations[-1]
        base = {"f": "txn", "process": 1 + max(op["process"] for op in self.operations if op["process"] != "nemesis")}
        added = [{**base, "index": last["index"] + 1, "type": "invoke", "time": last["time"] + 1000,
                  "value": [[what, key, None] for what, key, _ in value]},
                 {**base, "index": last["index"] + 2, "type": "ok", "time": last["time"] + 2000, "value": value}]
        self.operations += added
        with open(self.path, "a") as file:
            file.writelines(json.dumps(operation) + "\n" for operation in added)
        # What was acknowledged, and is not there. Of registers, only the last value is known.
        self.lost = [] if self.kind == "registers" else [
            (key, element) for operation in self.operations if operation["type"] == "ok"
            for what, key, element in operation["value"] if what == "append" and element not in found.get(key, [])]

    def check(self, adya):
        """Asks the checker; `ruled_out` are the models that do not hold, `anomalies` what was found, by kind."""
        model = ["-m", "list-append"]
        if self.kind == "registers":
            model = ["-m", "rw-register", "--wfr-keys", "--linearizable-keys"]

        def report(consistency):
            done = subprocess.run([adya, "check", *model, "-c", consistency, "--cycle-search-timeout", "20000", "--json", self.path],
                                  stdout=subprocess.PIPE, check=False, timeout=600)
            assert done.returncode in (0, 1, 2), f"the checker has failed on {self.path}"
            return json.loads(done.stdout)

        whole = report("strict-serializable")
        self.ruled_out = set(whole["not"]) | set(whole["also_not"])
        self.anomalies = {name: len(found) for name, found in whole["anomalies"].items()}
        if self.anomalies:
            # Circles are found once in each group of transactions that hang together. Groups are smaller without real time.
            self.anomalies.update({name: len(found) for name, found in report("serializable")["anomalies"].items()})
        assert whole["valid"] is True or self.anomalies, self.path
        assert "empty-transaction-graph" not in self.anomalies, f"{self.path} says nothing"


def strongest(ruled_out):
    return next((model for model in LADDER if model not in ruled_out), "none of the ladder")


class Server:
    def __init__(self, start, stop, directory, options):
        self.stop_script, self.directory = stop, directory
        self.starting = [start, directory, "--sql-mode=STRICT_TRANS_TABLES", *options]
        subprocess.run(self.starting, check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        subprocess.run([self.stop_script, self.directory], check=True)

    def run(self, adya, path, engine, level, kind, transactions, seed, kills):
        """Returns a history, or why there is none."""
        # The checker asks for InnoDB by name.
        ask(self.directory, f"SET GLOBAL enforce_storage_engine = {engine}")
        arguments = ["mysql", "--url", f"mysql://root@localhost/adya?socket={self.directory}/socket", "-i", level]
        if kind == "rows":
            ask(self.directory, "DROP TABLE IF EXISTS adya_rows")
            ask(self.directory, "CREATE TABLE adya_rows (id BIGINT AUTO_INCREMENT PRIMARY KEY, k BIGINT NOT NULL, "
                                f"place INT NOT NULL, v BIGINT NOT NULL, UNIQUE KEY (k, place)) ENGINE={engine}")
            command = shlex.join([sys.executable, os.path.abspath(__file__), "client", self.directory, level])
            arguments = ["exec", "--url", "exec " + command]
        if kills:
            arguments += ["--fault", shlex.join([sys.executable, os.path.abspath(__file__), "kill", self.directory]),
                          "--heal", shlex.join(self.starting), "--fault-every", "0", "--fault-for", "0"]
        done = subprocess.run(
            [adya, "run", *arguments, "-p", str(CLIENTS), "-n", str(transactions), "--keys", str(KEYS), "--seed", str(seed),
             "--time-limit", str(MOST_SECONDS), "-m", "rw-register" if kind == "registers" else "list-append",
             "-c", "read-uncommitted", "-o", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
            timeout=MOST_SECONDS + 2 * servers.PATIENCE)
        if done.returncode not in (0, 1, 2):
            return done.stderr.strip().splitlines()[-1]
        table = KINDS[kind]
        definition = ask(self.directory, f"SHOW CREATE TABLE {table}")[0][1]
        assert f"ENGINE={engine} " in definition, f"not a table of {engine}: {definition}"
        history = History(path, kind)
        if kind == "rows":
            found = {}
            for key, value in ask(self.directory, f"SELECT k, v FROM {table} ORDER BY k, place"):
                found.setdefault(key, []).append(value)
        else:
            found = dict(ask(self.directory, f"SELECT k, v FROM {table}"))
            if kind == "lists":
                found = {key: [int(one) for one in text.split(",")] for key, text in found.items()}
        history.add_final_read(found)
        checked = ask(self.directory, f"CHECK TABLE {table}")
        history.damaged = None if checked[-1][3] == "OK" else checked
        history.check(adya)
        return history


def doctored(history, adya):
    """Takes an acknowledged append out of the final state; returns whether that is noticed."""
    final = history.operations[-1]["value"]
    at = max(range(len(final)), key=lambda one: len(final[one][2]))
    key, elements = final[at][1], final[at][2]
    ours = {part[2] for operation in history.operations if operation["type"] == "ok" for part in operation["value"]
            if part[:2] == ["append", key]}
    taken = next(element for element in reversed(elements) if element in ours)
    final[at][2] = [element for element in elements if element != taken]
    path = history.path + ".doctored"
    with open(path, "w") as file:
        file.writelines(json.dumps(operation) + "\n" for operation in history.operations)
    final[at][2] = elements
    copy = History(path, history.kind)
    copy.check(adya)
    os.remove(path)
    return "strict-serializable" in copy.ruled_out


class Findings:
    """What several histories have shown together."""

    def __init__(self):
        self.ended, self.anomalies, self.ruled_out, self.kills, self.lost = collections.Counter(), collections.Counter(), set(), 0, 0
        self.histories, self.refused = 0, None

    def add(self, other):
        """`other` is a history, or other findings."""
        self.ended.update(other.ended)
        self.anomalies.update(other.anomalies)
        self.ruled_out |= other.ruled_out
        self.kills += other.kills
        self.lost += other.lost if isinstance(other.lost, int) else len(other.lost)
        self.histories += 1

    def __str__(self):
        if self.refused:
            return self.refused
        return (f"{self.ended['ok']} committed, {self.ended['fail']} failed, {self.ended['info']} unknown"
                + (f", {self.kills} kills" if self.kills else "") + (f", {self.lost} ACKNOWLEDGED AND LOST" if self.lost else "")
                + f"; {strongest(self.ruled_out)}; found {counted(self.anomalies)}")


def counted(anomalies):
    return ", ".join(f"{count} {name}" for name, count in sorted(anomalies.items())) or "nothing"


class Judge:
    """Runs histories, and collects what they show, in `found` by setting, level, kind and whether there were kills."""

    def __init__(self, adya, directory, transactions, seed):
        self.adya, self.directory, self.transactions, self.seed = adya, directory, transactions, seed
        self.found, self.broken, self.warnings, self.doctored = {}, [], [], None

    def run(self, server, number, setting, level, kind, kills):
        """Returns whether the server runs this level."""
        found = self.found[setting.name, level, kind, kills] = Findings()
        what = f"{setting.name}, {level}, {kind}" + (", kills" if kills else "")

        def enough():
            return found.ended["ok"] >= self.transactions and found.kills >= (2 if kills else 0)

        while found.histories < MOST_HISTORIES and not enough():
            self.seed += 1
            name = f"{number}-{level}-{kind}-{'kills' if kills else 'quiet'}-{found.histories}.jsonl"
            path = os.path.join(self.directory, "histories", name)
            # Some will fail.
            length = max(500, (self.transactions - found.ended["ok"]) * 5 // 4)
            length = min(length, LONGEST.get(kind, length))
            history = server.run(self.adya, path, setting.engine, level, kind, length, self.seed, kills)
            if isinstance(history, str):
                found.refused = history
                if setting.engine == "Pantile":
                    self.broken.append(f"{what}: {history}")
                break
            found.add(history)
            wrong = [f"not {PROMISED[level]}"] * (PROMISED[level] in history.ruled_out) \
                + [f"{len(history.lost)} acknowledged and lost, such as {history.lost[:3]}"] * bool(history.lost) \
                + [f"damaged: {history.damaged}"] * bool(history.damaged)
            if wrong and setting.engine == "Pantile":
                self.broken.append(f"{what}: {name}, seed {self.seed}: {'; '.join(wrong)}; found {counted(history.anomalies)}")
            elif not KEEP:
                os.remove(path)
            if self.doctored is None and kind == "lists" and not wrong:
                self.doctored = doctored(history, self.adya)
                if not self.doctored:
                    self.warnings.append(f"control: an append was taken out of {name}, and nothing was noticed")
        print(f"{what}: {found}", flush=True)
        if not found.refused and not enough():
            self.warnings.append(f"{what}: less than was asked for")
        return not found.refused

    def together(self, name, level, columns=None):
        """Findings of one level, of those kinds that `columns` accepts."""
        whole = Findings()
        for (one, at, kind, kills), found in self.found.items():
            if (one, at) == (name, level) and (columns is None or columns(kind, kills)):
                whole.refused = whole.refused or found.refused
                whole.add(found)
        return whole

    def print_ladder(self):
        columns = [lambda kind, kills: kind != "rows" and not kills, lambda kind, kills: kind == "rows" and not kills,
                   lambda kind, kills: kills]
        print("\n| engine | level | one row | ranges | across kill -9 | found |\n| --- | --- | --- | --- | --- | --- |")
        for name, level in dict.fromkeys(key[:2] for key in self.found):
            whole = self.together(name, level)
            cells = []
            for column in columns:
                found = self.together(name, level, column)
                cells.append("refused" if found.refused else strongest(found.ruled_out) if found.histories else "")
            lost = f", {whole.lost} lost" if whole.lost else ""
            print(f"| {name} | {level.replace('-', ' ').upper()} | {' | '.join(cells)} | {counted(whole.anomalies)}{lost} |")
        everything = Findings()
        for found in self.found.values():
            everything.add(found)
        print(f"\n{everything.ended['ok']} transactions have committed, across {everything.kills} kills.")

    def control(self, name, level, wanted):
        whole = self.together(name, level)
        if whole.histories and not wanted & (set(whole.anomalies) | ({"lost"} if whole.lost else set())):
            self.warnings.append(f"control: {name} at {level} should have shown one of {sorted(wanted)}, and has not")


def main():
    start, stop, adya, directory, transactions, seed, *engines = sys.argv[1:]
    judge = Judge(adya, directory, int(transactions), int(seed))
    print(f"seed {seed}; {transactions} transactions committed of each kind, {CLIENTS} clients, {KEYS} keys", flush=True)
    for number, setting in enumerate(setting for engine in engines for setting in SETTINGS[engine]):
        place = os.path.join(directory, f"server-{number}")
        server = Server(start, stop, place, setting.options)
        connection = pymysql.connect(unix_socket=place + "/socket", user="root")
        connection.cursor().execute("CREATE DATABASE adya")
        connection.close()
        for level in setting.levels:
            # A level that is refused is asked for once.
            all(judge.run(server, number, setting, level, kind, kills) for kind in setting.kinds for kills in setting.kills)
        server.stop()
    judge.print_ladder()
    judge.control("InnoDB", "repeatable-read", {"lost-update", "G-single-item"})
    judge.control("InnoDB", "read-uncommitted", {"G1a", "G1b", "G1c", "dirty-update"})
    judge.control("InnoDB, flush_log_at_trx_commit=0", "serializable", {"lost"})
    judge.control("Pantile", "read-committed", {"lost-update", "G-single-item"})
    judge.control("Pantile", "repeatable-read", {"G2-item"})
    for warning in judge.warnings:
        print(f"WARNING: {warning}")
    for one in judge.broken:
        print(f"BROKEN: {one}")
    sys.exit(1 if judge.broken else 0)


if sys.argv[1] == "kill":
    kill(sys.argv[2])
elif sys.argv[1] == "client":
    client(sys.argv[2], sys.argv[3])
else:
    main()
