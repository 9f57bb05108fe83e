"""Two-phase commit: kills a server again and again while transactions write to tables of InnoDB and of Pantile, with the
binary log on, and while clients prepare transactions by XA. After each restart:

- every transaction that was acknowledged is in both engines, and none is in one of them only;
- what XA has prepared is prepared, with its locks, and what was decided is decided;
- an index that is added and dropped meanwhile leads to all rows, or is not there.

In the end, the binary log gives the same tables on another server, but for what XA has written: the server writes that a
transaction is prepared into the log after the engines have prepared it, and a kill in between leaves the one without the
other, with any engine.

usage: two_phases.py START_SCRIPT STOP_SCRIPT DIRECTORY ROUNDS SEED
"""

import glob
import os
import random
import subprocess
import sys
import threading
import time

import pymysql

import servers

ENGINE = os.environ.get("ENGINE", "Pantile")
BOTH, ALONE, XA_CLIENTS = 3, 2, 3
# Of a server that was killed.
GONE = (2006, 2013, 0, 1053, 1927)
IN_THE_WAY = (1020, 1205, 1213)


def connect(directory, database="two", autocommit=False):
    return pymysql.connect(unix_socket=directory + "/socket", user="root", database=database, autocommit=autocommit)


def start(script, directory, *options):
    subprocess.run([script, directory, *options], check=True, stdout=subprocess.DEVNULL)
    with open(directory + "/pid") as file:
        return int(file.read())


class Client(threading.Thread):
    """Runs transactions until the server is gone. Their numbers rise; `known` is the last that was acknowledged."""

    def __init__(self, directory, number, known, seed):
        super().__init__()
        self.directory, self.number, self.known, self.tried = directory, number, known, known
        self.random, self.error = random.Random(seed), None

    def run(self):
        try:
            connection = connect(self.directory)
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL "
                               + self.random.choice(["READ COMMITTED", "REPEATABLE READ", self.highest]))
                # No engine sees circles of waits in two engines.
                cursor.execute("SET SESSION pantile_lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1")
                while True:
                    self.tried = self.known + 1
                    self.transaction(connection, cursor)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError) as error:
            if error.args and error.args[0] not in GONE:
                self.error = error
        except Exception as error:  # noqa: BLE001: told by the main thread
            self.error = error


class Both(Client):
    """Writes a row to a table of each engine, and counts in a row of each that others want, too."""

    highest = "SERIALIZABLE"

    def transaction(self, connection, cursor):
        tables = ["inno", "own"]
        self.random.shuffle(tables)
        note = "x" * self.random.choice([1, 100, 3000])
        try:
            for table in tables:
                cursor.execute(f"INSERT INTO {table} (client, seq, note) VALUES (%s, %s, %s)", (self.number, self.tried, note))
                cursor.execute(f"UPDATE count_{table} SET n = n + 1 WHERE id = %s", (self.tried % 3,))
            connection.commit()
            self.known = self.tried
        except pymysql.err.OperationalError as error:
            if error.args[0] not in IN_THE_WAY:
                raise
            connection.rollback()


class Alone(Client):
    """Writes to Pantile alone, with statements of their own."""

    highest = "SERIALIZABLE"

    def transaction(self, connection, cursor):
        try:
            cursor.execute("INSERT INTO alone (client, seq, note) VALUES (%s, %s, 'y')", (self.number, self.tried))
            connection.commit()
            self.known = self.tried
        except pymysql.err.OperationalError as error:
            if error.args[0] not in IN_THE_WAY:
                raise
            connection.rollback()


# One was about to commit for ten seconds: the machine is busy.
ALSO_IN_THE_WAY = (*IN_THE_WAY, 1815)
# A definition changes in place 200 times, and then by a copy.
TOO_MANY_CHANGES = 1845


class Indexes(Client):
    """Adds an index to a table beside those who write to it, of whom one is always about to commit."""

    highest = "READ COMMITTED"

    def transaction(self, connection, cursor):
        try:
            cursor.execute("ALTER TABLE alone ADD INDEX IF NOT EXISTS more (seq), ALGORITHM=INPLACE, LOCK=NONE")
            cursor.execute("ALTER TABLE alone DROP INDEX IF EXISTS more")
            self.known += 1
        except pymysql.err.MySQLError as error:
            if error.args[0] == TOO_MANY_CHANGES:
                cursor.execute("ALTER TABLE alone FORCE, ALGORITHM=COPY")
            elif error.args[0] not in ALSO_IN_THE_WAY:
                raise


class Xa(Client):
    """Prepares transactions by XA and decides them, from its own connection or from another. `state` has what it knows of
    those that may have been prepared: whether it was told so, and what it has decided."""

    highest = "REPEATABLE READ"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state = {}

    def transaction(self, connection, cursor):
        name = f"{self.number}-{self.tried}"
        try:
            cursor.execute(f"XA START '{name}'")
            cursor.execute("INSERT INTO xa (client, seq) VALUES (%s, %s)", (self.number, self.tried))
            cursor.execute("UPDATE xa_count SET n = n + 1 WHERE client = %s", (self.number,))
            cursor.execute(f"XA END '{name}'")
        except pymysql.err.OperationalError as error:
            if error.args[0] not in IN_THE_WAY:
                raise
            cursor.execute(f"XA ROLLBACK '{name}'")
            return
        self.state[self.tried] = ["asked", None]
        cursor.execute(f"XA PREPARE '{name}'")
        self.state[self.tried][0] = "prepared"
        if self.random.random() < 0.3:
            # Another connection decides.
            connection.close()
            connection = connect(self.directory, autocommit=True)
            fresh = connection.cursor()
            names = [row[3] for row in self.recover(fresh)]
            assert name in names, f"{name} is not among the prepared {names}"
        else:
            fresh = cursor
        what = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        self.state[self.tried][1] = what
        servers.eventually(f"{name} can be decided", lambda: self.decide(fresh, what, name), pause=0.002)
        self.state[self.tried] = ["decided", what]
        self.known = self.tried
        if fresh is not cursor:
            raise Again(connection)

    @staticmethod
    def decide(cursor, what, name):
        """Returns whether it could: the connection that was closed may not have ended yet."""
        try:
            cursor.execute(f"XA {what} '{name}'")
            return True
        except pymysql.err.MySQLError as error:
            if error.args[0] != 1397:
                raise
            return False

    @staticmethod
    def recover(cursor):
        cursor.execute("XA RECOVER")
        return [(row[0], row[1], row[2], row[3].decode() if isinstance(row[3], bytes) else row[3]) for row in cursor.fetchall()]

    def run(self):
        try:
            connection = connect(self.directory, autocommit=True)
            while True:
                try:
                    with connection.cursor() as cursor:
                        while True:
                            self.tried = self.known + 1
                            self.transaction(connection, cursor)
                except Again as again:
                    connection = again.connection
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError) as error:
            if error.args and error.args[0] not in GONE:
                self.error = error
        except Exception as error:  # noqa: BLE001
            self.error = error


class Again(Exception):
    def __init__(self, connection):
        super().__init__()
        self.connection = connection


def one(cursor, statement):
    cursor.execute(statement)
    return cursor.fetchone()


def check_both(cursor, clients):
    for table in ["inno", "own"]:
        cursor.execute(f"SELECT client, seq, LENGTH(note) FROM {table} ORDER BY client, seq")
        rows = cursor.fetchall()
        if table == "inno":
            expected = rows
    lacking = set(expected) ^ set(rows)
    assert not lacking, f"in one engine only: {sorted(lacking)[:5]} (of InnoDB: {sorted(set(expected) - set(rows))[:5]})"
    counts = []
    for table in ["inno", "own"]:
        cursor.execute(f"SELECT id, n FROM count_{table} ORDER BY id")
        counts.append(cursor.fetchall())
    assert counts[0] == counts[1], f"counted {counts}"
    assert sum(n for _, n in counts[0]) == len(rows), f"{counts[0]} of {len(rows)}"
    check_clients(cursor, "own", clients)


def check_clients(cursor, table, clients):
    for client in clients:
        rows, highest = one(cursor, f"SELECT COUNT(*), COALESCE(MAX(seq), 0) FROM {table} WHERE client = {client.number}")
        assert rows == highest, f"{table}, client {client.number}: {rows} rows up to {highest}"
        assert client.known <= highest <= client.tried, \
            f"{table}, client {client.number}: {highest}, acknowledged {client.known}, tried {client.tried}"
        client.known = highest


def check_xa(directory, cursor, clients, rand):
    prepared = {row[3] for row in Xa.recover(cursor)}
    for client in clients:
        for seq, (stage, decision) in client.state.items():
            name = f"{client.number}-{seq}"
            there = one(cursor, f"SELECT COUNT(*) FROM xa WHERE client = {client.number} AND seq = {seq}")[0]
            if stage == "decided":
                assert name not in prepared, f"{name} was decided"
                assert there == (decision == "COMMIT"), f"{name}: {decision}, {there} rows"
                continue
            if stage == "prepared" and decision is None:
                assert name in prepared, f"{name} was prepared, and only {prepared} are"
            if name in prepared:
                assert there == 0, f"{name} is prepared and seen"
                # Its locks are there.
                cursor.execute("SET SESSION pantile_lock_wait_timeout = 0, SESSION innodb_lock_wait_timeout = 1")
                try:
                    cursor.execute(f"UPDATE xa_count SET n = n + 1 WHERE client = {client.number}")
                    raise AssertionError(f"{name} has no locks")
                except pymysql.err.OperationalError as error:
                    assert error.args[0] == 1205, error
                for statement in ["DROP TABLE xa", "TRUNCATE xa", "ALTER TABLE xa ADD COLUMN more INT", "RENAME TABLE xa TO xb"]:
                    try:
                        cursor.execute(statement)
                        raise AssertionError(f"{statement} beside {name}")
                    except pymysql.err.MySQLError as error:
                        assert error.args[0] in (1192, 1815, 1205), error
                if rand.random() < 0.3:
                    # It stays for the next life.
                    continue
                decision = rand.choice(["COMMIT", "ROLLBACK"])
                cursor.execute(f"XA {decision} '{name}'")
                there = one(cursor, f"SELECT COUNT(*) FROM xa WHERE client = {client.number} AND seq = {seq}")[0]
                assert there == (decision == "COMMIT"), f"{name}: {decision}, {there} rows"
            elif stage == "prepared":
                assert there == (decision == "COMMIT"), f"{name}: {decision}, {there} rows"
            else:
                assert there == 0, f"{name} was not prepared"
        last = max(client.state, default=client.known)
        client.known = last
        client.state = {seq: of for seq, of in client.state.items() if f"{client.number}-{seq}" in
                        {row[3] for row in Xa.recover(cursor)}}
        for of in client.state.values():
            of[:] = ["prepared", None]
        rows, = one(cursor, f"SELECT COUNT(*) FROM xa WHERE client = {client.number}")
        count, = one(cursor, f"SELECT n FROM xa_count WHERE client = {client.number}")
        assert rows == count, f"client {client.number}: {rows} rows, counted {count}"


def decide_all(cursor):
    for row in Xa.recover(cursor):
        cursor.execute(f"XA ROLLBACK '{row[3]}'")


TABLES = ["inno", "own", "count_inno", "count_own", "alone"]


def contents(cursor):
    found = {}
    for table in TABLES:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
        found[table] = cursor.fetchall()
    return found


def compare_with_log(script, stop, directory, expected):
    """Another server gets what the binary log has."""
    other = directory + "-again"
    start(script, other)
    base = os.environ["SERVER"]
    logs = sorted(glob.glob(directory + "/binlog.[0-9]*"))
    write = subprocess.Popen(
        [base + "/usr/bin/mariadb", "--no-defaults", "--user=root", "--socket=" + other + "/socket", "--binary-mode", "--force",
         "--init-command=SET pantile_lock_wait_timeout = 0, innodb_lock_wait_timeout = 1"],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for log in logs:
        # A kill may have cut off the last event of a log. Its number is then given again.
        subprocess.run([base + "/usr/bin/mariadb-binlog", "--no-defaults", "--skip-gtid-strict-mode", log], stdout=write.stdin,
                       stderr=subprocess.DEVNULL)
    write.stdin.close()
    write.wait()
    connection = connect(other)
    with connection.cursor() as cursor:
        again = contents(cursor)
    for table in TABLES:
        lacking = set(expected[table]) ^ set(again[table])
        assert not lacking, f"{table}: the log and the table differ in {sorted(lacking)[:5]}"
    connection.close()
    subprocess.run([stop, other], check=True)


def main():
    script, stop, directory, rounds, seed = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    print(f"{rounds} kills, seed {seed}", flush=True)
    rand = random.Random(seed)
    options = [f"--log-bin={directory}/binlog", "--server-id=1", "--sync-binlog=1", "--max-binlog-size=256K",
               "--binlog-format=" + rand.choice(["ROW", "MIXED"])]
    process = start(script, directory, *options)
    connection = connect(directory, None)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE two")
        cursor.execute("USE two")
        for table, engine in [("inno", "InnoDB"), ("own", ENGINE), ("alone", ENGINE)]:
            cursor.execute(f"CREATE TABLE {table} (client INT, seq INT, note VARCHAR(5000), PRIMARY KEY (client, seq)) "
                           f"ENGINE={engine}")
        for table, engine in [("count_inno", "InnoDB"), ("count_own", ENGINE)]:
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT) ENGINE={engine}")
            cursor.execute(f"INSERT INTO {table} VALUES (0, 0), (1, 0), (2, 0)")
        cursor.execute(f"CREATE TABLE xa (client INT, seq INT, PRIMARY KEY (client, seq)) ENGINE={ENGINE}")
        cursor.execute(f"CREATE TABLE xa_count (client INT PRIMARY KEY, n INT) ENGINE={ENGINE}")
        cursor.execute(f"INSERT INTO xa_count SELECT seq, 0 FROM seq_0_to_{XA_CLIENTS - 1}")
    connection.commit()
    connection.close()
    both, alone, xa = [0] * BOTH, [0] * ALONE, [(0, {}) for _ in range(XA_CLIENTS)]
    for kill in range(1, rounds + 1):
        pairs = [Both(directory, n, known, rand.random()) for n, known in enumerate(both)]
        singles = [Alone(directory, n, known, rand.random()) for n, known in enumerate(alone)]
        xas = [Xa(directory, n, known, rand.random()) for n, (known, _) in enumerate(xa)]
        for client, (_, state) in zip(xas, xa):
            client.state = state
        threads = [*pairs, *singles, Indexes(directory, 0, 0, rand.random()), *[client for client in xas if not client.state]]
        for thread in threads:
            thread.start()
        # A kill before anything is committed shows nothing. One that has failed is told of below.
        servers.eventually("something is committed", lambda: any(
            client.known > known for client, known in zip(pairs, both)) or any(thread.error for thread in threads))
        time.sleep(rand.uniform(0, 1.3))
        servers.kill(process)
        for thread in threads:
            thread.join()
            assert thread.error is None, f"before the kill: {thread.error!r}"
        process = start(script, directory, *options)
        connection = connect(directory, autocommit=True)
        with connection.cursor() as cursor:
            check_both(cursor, pairs)
            check_clients(cursor, "alone", singles)
            found = one(cursor, "CHECK TABLE alone")
            assert found[3] == "OK", found
            check_xa(directory, cursor, xas, rand)
        connection.commit()
        connection.close()
        both, alone = [client.known for client in pairs], [client.known for client in singles]
        xa = [(client.known, client.state) for client in xas]
        print(f"kill {kill}: {sum(both)} in both engines, {sum(alone)} alone, {sum(known for known, _ in xa)} by XA, "
              f"{sum(len(state) for _, state in xa)} stay prepared", flush=True)
    connection = connect(directory, autocommit=True)
    with connection.cursor() as cursor:
        decide_all(cursor)
        found = contents(cursor)
    connection.commit()
    connection.close()
    compare_with_log(script, stop, directory, found)
    print("nothing lost, and the binary log has the same")


main()
