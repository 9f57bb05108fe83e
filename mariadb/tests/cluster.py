"""Transactions over two or three shards, which a front server with Spider commits by XA: shards and the front are killed at each
step of a commit, and at random moments under load. After each kill, what was killed is started again, `cluster resolve` ends what
is undecided, and then

- a transaction is on all of its shards or on none, and each shard's balances are what its journal says;
- what was acknowledged is on all, and what was rolled back, or whose COMMIT was never sent, is on none;
- no name of a transaction is left on a shard, and no note on the front.

Steps are hit exactly: the front reaches each shard through a proxy that knows the statements of a commit, and kills before it
hands one on, or before it hands its answer back.

usage: cluster.py CLUSTER_SCRIPT DIRECTORY SHARDS KILLS SEED
"""

import os
import random
import socket
import subprocess
import sys
import threading
import time

import pymysql

import servers

ENGINE = os.environ.get("PANTILE_SHARD_ENGINE", "Pantile")
CLIENTS = 6
ACCOUNTS = 30
BALANCE = 1000
LIMIT = 600
OPTIONS = ["--pantile-lock-wait-timeout=2", "--innodb-lock-wait-timeout=2"]


class Cluster:
    def __init__(self, script, directory, shards):
        self.script, self.directory, self.shards = script, directory, shards
        self.start()
        self.proxies = [Proxy(self, number) for number in range(1, shards + 1)]
        self.trap = None
        for number, proxy in enumerate(self.proxies, 1):
            self.ask(f"shard{number}", f"CREATE TABLE shop.journal (txn BIGINT, shard INT, mask INT, delta BIGINT, "
                                       f"PRIMARY KEY (txn, shard)) ENGINE={ENGINE}")
            self.ask("front", f"ALTER SERVER shard{number} OPTIONS (PORT {proxy.port})")
        parts = ", ".join(f"PARTITION p{n} VALUES IN ({n}) COMMENT='server \"shard{n}\"'" for n in range(1, shards + 1))
        self.ask("front", "FLUSH TABLES",
                 "CREATE TABLE shop.journal (txn BIGINT, shard INT, mask INT, delta BIGINT, PRIMARY KEY (txn, shard)) "
                 f"ENGINE=SPIDER COMMENT='wrapper \"mysql\", table \"journal\"' PARTITION BY LIST (shard) ({parts})",
                 "INSERT INTO shop.account VALUES " + ", ".join(f"({n}, {BALANCE})" for n in range(ACCOUNTS)),
                 # It writes in a statement that is called SELECT.
                 "CREATE FUNCTION shop.write_all(t BIGINT) RETURNS INT BEGIN INSERT INTO shop.journal VALUES "
                 + ", ".join(f"(t, {n}, {(1 << shards) - 1}, 0)" for n in range(1, shards + 1)) + "; RETURN 1; END")
        for number in range(1, shards + 1):
            engine, = self.ask(f"shard{number}", "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = 'shop'")
            assert engine == (ENGINE,), engine

    def start(self):
        subprocess.run([self.script, "start", self.directory, str(self.shards), *OPTIONS], check=True, stdout=subprocess.DEVNULL)

    def kill(self, part):
        with open(f"{self.directory}/{part}/pid") as file:
            process = int(file.read())
        servers.kill(process)
        if part == "front":
            for proxy in self.proxies:
                with proxy.lock:
                    proxy.orphans |= proxy.ports

    def connect(self, part):
        return pymysql.connect(unix_socket=f"{self.directory}/{part}/socket", user="root", database=None, autocommit=True,
                               read_timeout=LIMIT)

    def ask(self, part, *statements):
        return servers.ask(self.connect(part), statements)

    def resolve(self, seconds=20):
        """Returns whether nothing is left, and what was printed."""
        done = subprocess.run([self.script, "resolve", self.directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT, env={**os.environ, "PANTILE_RESOLVE_SECONDS": str(seconds)})
        assert done.returncode in (0, 1), done.stdout
        return done.returncode == 0, done.stdout

    def await_quiet(self):
        """The connections of a front that was killed end a moment later, and may prepare until then."""
        limit = time.monotonic() + LIMIT
        for number, proxy in enumerate(self.proxies, 1):
            while True:
                rows = self.ask(f"shard{number}", "SELECT host FROM information_schema.processlist WHERE user = 'spider'")
                with proxy.lock:
                    proxy.orphans &= proxy.ports | {int(host.rsplit(":", 1)[1]) for host, in rows}
                    if not proxy.orphans:
                        break
                assert time.monotonic() < limit, "connections of a front that was killed stay"
                time.sleep(0.01)

    def prepared(self):
        return sum(len(self.ask(f"shard{number}", "XA RECOVER")) for number in range(1, self.shards + 1))

    def check(self, outcomes):
        """`outcomes` has of each transaction "all" or "none", or None if its client was not told. Returns which are there."""
        assert self.prepared() == 0, "names are left on shards"
        notes = self.ask("front", "SELECT data, status FROM mysql.spider_xa UNION ALL SELECT data, host FROM mysql.spider_xa_member")
        assert not notes, f"notes are left: {notes[:5]}"
        found, masks, total = {}, {}, 0
        for number in range(1, self.shards + 1):
            for txn, shard, mask in self.ask(f"shard{number}", "SELECT txn, shard, mask FROM shop.journal"):
                assert shard == number, f"a row of shard {shard} is on {number}"
                found[txn] = found.get(txn, 0) | 1 << (number - 1)
                assert masks.setdefault(txn, mask) == mask
            (balance, accounts), = self.ask(f"shard{number}", "SELECT SUM(balance), COUNT(*) FROM shop.account")
            delta, = self.ask(f"shard{number}", "SELECT COALESCE(SUM(delta), 0) FROM shop.journal")[0]
            assert balance == accounts * BALANCE + delta, f"shard {number}: {balance}, its journal says {delta}"
            total += balance
        assert total == ACCOUNTS * BALANCE, f"the sum is {total}"
        for txn, shards in found.items():
            assert shards == masks[txn], f"{txn} is on the shards {shards:b} of {masks[txn]:b}"
        for txn, outcome in outcomes.items():
            assert outcome is None or (outcome == "all") == (txn in found), f"{txn} is to be on {outcome}: {txn in found}"
        assert not set(found) - set(outcomes), "rows of nobody"
        return found


class Trap:
    """Kills `victim` once, at the statement number `ordinal` of its `kind`, before it is handed on or its answer is. "prepared"
    is a shard that has prepared. `then` is called before all goes on."""

    def __init__(self, cluster, kind, ordinal, when, victim, then=None):
        self.cluster, self.at, self.victim, self.then = cluster, (kind, ordinal, when), victim, then
        self.lock, self.counts = threading.Lock(), {}
        # What was answered before the kill.
        self.has_fired, self.answered = False, set()

    def see(self, kind, shard):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            event = kind, self.counts[kind], shard
            self.fire(event, "before")
            return event

    def answer(self, event):
        with self.lock:
            self.fire(event, "after")
            if not self.has_fired:
                self.answered.add((event[0], f"shard{event[2]}"))

    def fire(self, event, when):
        if not self.has_fired and (event[0], event[1], when) == self.at:
            self.has_fired = True
            if self.victim == "prepared":
                self.victim = next(shard for kind, shard in self.answered if kind == "prepare")
            self.cluster.kill(self.victim)
            if self.then:
                self.result = self.then()


class Proxy:
    """Between the front and a shard."""

    KINDS = {b"xa prepare": "prepare", b"xa commit": "commit", b"xa rollback": "rollback"}

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.address = f"127.0.0.{number + 1}"
        with open(f"{cluster.directory}/shard{number}/port") as file:
            self.to = int(file.read())
        self.socket = socket.create_server((self.address, 0))
        self.port = self.socket.getsockname()[1]
        # Its connections to the shard, by their ports; and those of fronts that were killed.
        self.lock, self.ports, self.orphans = threading.Lock(), set(), set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.socket.accept()
            try:
                server = socket.create_connection((self.address, self.to))
            except OSError:
                client.close()
                continue
            for one in client, server:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            state = {"port": server.getsockname()[1]}
            with self.lock:
                self.ports.add(state["port"])
                self.orphans.discard(state["port"])
            for work, one, other in (self.requests, client, server), (self.answers, server, client):
                threading.Thread(target=self.pump, args=(work, one, other, state), daemon=True).start()

    def pump(self, work, one, other, state):
        try:
            work(one, other, state)
        except OSError:
            pass
        for end in one, other:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        one.close()
        if work == self.answers:
            with self.lock:
                self.ports.discard(state["port"])

    @staticmethod
    def read(one, size):
        data = b""
        while len(data) < size:
            more = one.recv(size - len(data))
            if not more:
                raise OSError
            data += more
        return data

    def requests(self, client, server, state):
        while True:
            head = self.read(client, 4)
            body = self.read(client, int.from_bytes(head[:3], "little"))
            trap = self.cluster.trap
            # A packet with the number 0 begins a command; 3 is a statement. Spider's are in small letters, others' are not.
            if trap and head[3] == 0 and body[:1] == b"\x03":
                for words, kind in self.KINDS.items():
                    if body[1:].startswith(words):
                        state["event"] = trap, trap.see(kind, self.number)
                        if trap.has_fired and trap.victim == "front" and "before" in trap.at:
                            raise OSError
            server.sendall(head + body)

    def answers(self, server, client, state):
        while True:
            data = server.recv(65536)
            if not data:
                raise OSError
            trap, event = state.pop("event", (None, None))
            if trap:
                trap.answer(event)
                if trap.has_fired and trap.victim == f"shard{self.number}":
                    # A reset may have overtaken the answer, and then the front does not get it.
                    if trap.at == (event[0], event[1], "after"):
                        raise OSError
            client.sendall(data)


class Steps:
    """Every step of a commit, with every victim."""

    def __init__(self, cluster):
        self.cluster, self.shards = cluster, cluster.shards
        self.txn, self.outcomes, self.connection = 0, {}, None

    def transaction(self, how, before_commit=lambda: None):
        """Returns whether it was acknowledged."""
        self.txn += 1
        self.outcomes[self.txn] = None
        if self.connection is None:
            self.connection = self.cluster.connect("front")
        cursor = self.connection.cursor()
        try:
            if how == "function":
                cursor.execute(f"SELECT shop.write_all({self.txn})")
                return True
            cursor.execute("BEGIN")
            mask = (1 << self.shards) - 1
            # An account of the last shard pays one to each other.
            for number in range(1, self.shards + 1):
                delta = 1 if number < self.shards else 1 - self.shards
                cursor.execute(f"UPDATE shop.account SET balance = balance + {delta} WHERE id = {number - 1 + self.shards}")
                cursor.execute(f"INSERT INTO shop.journal VALUES ({self.txn}, {number}, {mask}, {delta})")
            before_commit()
            cursor.execute("ROLLBACK" if how == "rollback" else "COMMIT")
            return True
        except pymysql.err.MySQLError as error:
            self.error = error.args[0] if error.args else 0
            self.end_connection()
            return False

    def end_connection(self):
        """Where the front lives, its connection goes on."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except pymysql.err.MySQLError:
            try:
                self.connection.close()
            except pymysql.err.MySQLError:
                pass
            self.connection = None

    def finish(self, name, acknowledged, expected):
        self.cluster.trap = None
        self.cluster.start()
        self.cluster.await_quiet()
        prepared = self.cluster.prepared()
        self.outcomes[self.txn] = expected
        done, text = self.cluster.resolve(LIMIT // 2)
        assert done, f"{name}: {text}"
        found = self.cluster.check(self.outcomes)
        told = "no error" if acknowledged else f"error {self.error}"
        print(f"  {name}: {told}, {prepared} undecided, then on {'all' if self.txn in found else 'no'} shards", flush=True)

    def at(self, kind, ordinal, when, victim, how="commit"):
        trap = Trap(self.cluster, kind, ordinal, when, victim)
        self.cluster.trap = trap
        acknowledged = self.transaction(how)
        assert trap.has_fired, f"{kind} {ordinal} was not reached"
        name = f"{when} {kind} {ordinal} of {self.shards}, {victim} killed"
        if how != "commit":
            name = f"in a {how}, {name}"
        if how == "rollback":
            # Of one that fails nothing stays, either.
            expected = "none"
        elif kind == "commit":
            # The front has noted that it commits.
            expected = "all"
        else:
            # A shard that has answered that it is prepared may die: it knows that when it is back.
            expected = "all" if ("prepare", victim) in trap.answered else "none"
        assert how == "rollback" or not acknowledged or expected == "all", f"{name}: acknowledged"
        self.finish(name, acknowledged, expected)

    def before_commit(self, victim, starts_again):
        def kill():
            self.cluster.kill(victim)
            if starts_again:
                self.cluster.start()
        acknowledged = self.transaction("commit", kill)
        name = f"before COMMIT, {victim} killed" + (" and started again" if starts_again else "")
        assert not acknowledged, f"{name}: acknowledged"
        self.finish(name, acknowledged, "none")

    def beside_a_commit(self):
        """A shard has prepared, dies and is back, and the front does not know that yet: it can still note that it commits. What is
        undecided then is not to be rolled back."""
        def resolve():
            try:
                self.cluster.start()
                return (self.cluster.prepared(), *self.cluster.resolve(1))
            except Exception as error:  # noqa: BLE001: told by the main thread
                return 0, None, repr(error)
        self.cluster.trap = trap = Trap(self.cluster, "prepare", self.shards, "before", "prepared", resolve)
        acknowledged = self.transaction("commit")
        prepared, done, text = trap.result
        assert prepared and done is False and "Ended 0 " in text, f"beside a commit: {prepared} prepared; {text}"
        assert not acknowledged
        self.finish("before the last prepare, a shard that has prepared killed, started again, and resolve called", False, "all")

    def run(self):
        self.beside_a_commit()
        victims = [f"shard{number}" for number in range(1, self.shards + 1)] + ["front"]
        for victim in victims:
            self.before_commit(victim, False)
            self.before_commit(victim, True)
        for kind in "prepare", "commit":
            for ordinal in range(1, self.shards + 1):
                for when in "before", "after":
                    for victim in victims:
                        self.at(kind, ordinal, when, victim)
        for victim in victims:
            self.at("rollback", 1, "before", victim, "rollback")
            self.at("commit", 2, "before", victim, "function")
        print(f"{self.shards} shards: {self.txn} kills at chosen steps, every outcome is as it should be", flush=True)
        return self.outcomes


class Client(threading.Thread):
    """Moves money between accounts of one or several shards until it is told to stop, whatever dies meanwhile."""

    def __init__(self, cluster, number, seed):
        super().__init__(daemon=True)
        self.cluster, self.number, self.random = cluster, number, random.Random(seed)
        self.outcomes, self.acknowledged, self.error = {}, 0, None
        self.done = threading.Event()

    def run(self):
        connection = None
        try:
            while not self.done.is_set():
                try:
                    if connection is None:
                        connection = self.cluster.connect("front")
                    with connection.cursor() as cursor:
                        self.transaction(cursor)
                except pymysql.err.MySQLError:
                    try:
                        with connection.cursor() as cursor:
                            cursor.execute("ROLLBACK")
                    except (pymysql.err.MySQLError, AttributeError):
                        connection = None
                        time.sleep(0.05)
        except Exception as error:  # noqa: BLE001: told by the main thread
            self.error = error

    def transaction(self, cursor):
        txn = self.number * 10 ** 9 + len(self.outcomes) + 1
        shards = sorted(self.random.sample(range(self.cluster.shards), self.random.randint(1, self.cluster.shards)))
        mask = sum(1 << shard for shard in shards)
        self.outcomes[txn] = "none"
        if self.random.random() < 0.2:
            # A statement that is a transaction.
            self.outcomes[txn] = None
            rows = ", ".join(f"({txn}, {shard + 1}, {mask}, 0)" for shard in shards)
            cursor.execute(f"INSERT INTO shop.journal VALUES {rows}")
            self.outcomes[txn] = "all"
            self.acknowledged += 1
            return
        amount, deltas = self.random.randint(1, 5), []
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL " + self.random.choice(["READ COMMITTED", "REPEATABLE READ"]))
        cursor.execute("BEGIN")
        for place, shard in enumerate(shards):
            delta = amount if place else -amount * (len(shards) - 1)
            account = self.random.randrange(ACCOUNTS // self.cluster.shards) * self.cluster.shards + shard
            deltas.append((account, delta, shard))
        for account, delta, shard in deltas:
            cursor.execute(f"UPDATE shop.account SET balance = balance + {delta} WHERE id = {account}")
            cursor.execute(f"INSERT INTO shop.journal VALUES ({txn}, {shard + 1}, {mask}, {delta})")
        if self.random.random() < 0.1:
            cursor.execute("ROLLBACK")
            return
        self.outcomes[txn] = None
        cursor.execute("COMMIT")
        self.outcomes[txn] = "all"
        self.acknowledged += 1


class Reader(threading.Thread):
    """Adds all accounts up: how many of the sums are of a transfer that was half there."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.done, self.sums, self.halves = cluster, threading.Event(), 0, 0

    def run(self):
        while not self.done.is_set():
            try:
                connection = self.cluster.connect("front")
                with connection.cursor() as cursor:
                    while not self.done.is_set():
                        cursor.execute("SELECT SUM(balance) FROM shop.account")
                        self.sums += 1
                        self.halves += cursor.fetchone()[0] != ACCOUNTS * BALANCE
                        time.sleep(0.01)
            except pymysql.err.MySQLError:
                time.sleep(0.05)


def load(cluster, kills, rand, outcomes):
    clients = []
    sums = halves = 0
    for kill in range(1, kills + 1):
        clients = [Client(cluster, kill * 100 + number, rand.random()) for number in range(1, CLIENTS + 1)]
        reader = Reader(cluster)
        for thread in [*clients, reader]:
            thread.start()
        time.sleep(rand.uniform(0.3, 1.5))
        victims = [f"shard{rand.randint(1, cluster.shards)}"]
        if rand.random() < 0.3:
            victims.append("front")
            rand.shuffle(victims)
        for victim in victims:
            cluster.kill(victim)
            time.sleep(rand.choice([0, 0, rand.uniform(0, 0.5)]))
        if "front" not in victims and rand.random() < 0.3:
            # A shard that is not there is not taken for one that has nothing.
            done, text = cluster.resolve()
            assert not done and "was not reached" in text, text
        cluster.start()
        # Beside the load: what still goes on is not touched.
        cluster.resolve()
        time.sleep(rand.uniform(0.2, 0.8))
        for thread in [*clients, reader]:
            thread.done.set()
        for client in clients:
            client.join(LIMIT)
            assert not client.is_alive(), "a client does not end"
            assert client.error is None, repr(client.error)
            outcomes.update(client.outcomes)
        reader.join(LIMIT)
        sums, halves = sums + reader.sums, halves + reader.halves
        cluster.await_quiet()
        done, text = cluster.resolve(LIMIT // 2)
        assert done, text
        found = cluster.check(outcomes)
        untold = [txn for client in clients for txn, outcome in client.outcomes.items() if outcome is None]
        print(f"{cluster.shards} shards, kill {kill} of {' and '.join(victims)}: "
              f"{sum(client.acknowledged for client in clients)} acknowledged, {len(untold)} whose client was not told, "
              f"of which {sum(txn in found for txn in untold)} are committed", flush=True)
        outcomes.update({txn: "all" if txn in found else "none" for txn in untold})
    print(f"{cluster.shards} shards: of {sums} sums over all shards, {halves} had a transfer half (reads have no common snapshot)",
          flush=True)


def main():
    script, directory, shards, kills, seed = *sys.argv[1:3], *map(int, sys.argv[3:6])
    print(f"{shards} shards with {ENGINE}, {kills} kills, seed {seed}", flush=True)
    cluster = Cluster(script, directory, shards)
    outcomes = {} if os.environ.get("PANTILE_NO_STEPS") else Steps(cluster).run()
    load(cluster, kills, random.Random(seed), outcomes)


main()
