"""Replication between a server whose tables are InnoDB's and one whose tables are Pantile's, in either direction, by GTID, with a
parallel applier. Either server is killed again and again under load. In the end, and after each kill, the replica catches up and
has the same rows.

usage: replication.py START_SCRIPT STOP_SCRIPT DIRECTORY ROUNDS SEED
"""

import random
import socket
import subprocess
import sys
import threading
import time

import pymysql

import servers

CLIENTS = 6
GONE = (2006, 2013, 0, 1053, 1927)
IN_THE_WAY = (1020, 1205, 1213)
TABLES = ["account", "journal", "note"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, script, directory, number, engine, *options):
        self.script, self.directory, self.engine, self.port = script, directory, engine, free_port()
        self.options = [f"--server-id={number}", f"--log-bin={directory}/binlog", "--sync-binlog=1", "--skip-networking=0",
                        "--bind-address=127.0.0.1", f"--port={self.port}", f"--default-storage-engine={engine}",
                        "--log-slave-updates", "--relay-log=relay", "--skip-slave-start", "--relay-log-recovery=1", *options]
        self.start()

    def start(self):
        subprocess.run([self.script, self.directory, *self.options], check=True, stdout=subprocess.DEVNULL)
        with open(self.directory + "/pid") as file:
            self.process = int(file.read())

    def kill(self):
        servers.kill(self.process)

    def connect(self, database=None, autocommit=True):
        return pymysql.connect(unix_socket=self.directory + "/socket", user="root", database=database, autocommit=autocommit)

    def ask(self, *statements):
        return servers.ask(self.connect(), statements)

    def contents(self):
        connection = self.connect("rep")
        found = {}
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
                found[table] = cursor.fetchall()
        connection.close()
        return found


class Client(threading.Thread):
    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self.server, self.number, self.random, self.error = server, number, random.Random(seed), None
        self.done = threading.Event()
        self.count, self.noted = 0, None

    def run(self):
        try:
            connection = self.server.connect("rep", autocommit=False)
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION pantile_lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1")
                while not self.done.is_set():
                    try:
                        self.transaction(cursor)
                        connection.commit()
                        self.count += 1
                    except pymysql.err.OperationalError as error:
                        if error.args[0] not in IN_THE_WAY:
                            raise
                        connection.rollback()
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError) as error:
            if error.args and error.args[0] not in GONE:
                self.error = error
        except Exception as error:  # noqa: BLE001: told by the main thread
            self.error = error

    def transaction(self, cursor):
        if self.noted:
            # An applier may come here before the transaction that added the row has committed, and must not find nothing.
            cursor.execute("DELETE FROM note WHERE id = %s", (self.noted,))
            self.noted = None
            return
        one, other = self.random.sample(range(20), 2)
        kind = self.random.randrange(10)
        text = "é" * self.random.randrange(40)
        if kind < 4:
            cursor.execute("UPDATE account SET n = n - 1 WHERE id = %s", (one,))
            cursor.execute("UPDATE account SET n = n + 1 WHERE id = %s", (other,))
            cursor.execute("INSERT INTO journal (client, t) VALUES (%s, %s)", (self.number, "x" * self.random.choice([1, 50, 2000])))
        elif kind < 6:
            cursor.execute("DELETE FROM journal WHERE client = %s ORDER BY id LIMIT 2", (self.number,))
        elif kind < 7:
            self.noted = 100 + self.number + CLIENTS * self.count
            cursor.execute("REPLACE INTO note VALUES (%s, %s)", (self.noted, text))
        elif kind < 9:
            cursor.execute("REPLACE INTO note VALUES (%s, %s)", (one, text))
        else:
            cursor.execute("DELETE FROM note WHERE id = %s", (one,))


def begin_replication(replica, primary, mode):
    replica.ask("STOP SLAVE", f"SET GLOBAL slave_parallel_mode = '{mode}'",
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='rep', "
                "MASTER_PASSWORD='rep', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1", "START SLAVE")


def set_read_only(replica):
    """Sets it, and takes it back. That waits for all statements, and all others wait for it, so appliers must not wait for one
    another meanwhile. They do for a row, with each engine: then the time limit ends it, and it is tried again."""
    def is_done():
        try:
            replica.ask("SET lock_wait_timeout = 3", "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0")
            return True
        except pymysql.err.OperationalError as error:
            if error.args[0] != 1205:
                raise
            return False
    servers.eventually("the replica is set to read only", is_done)


def await_caught_up(primary, replica, limit=servers.PATIENCE):
    """Returns how long it took."""
    began = time.monotonic()
    position, = primary.ask("SELECT @@gtid_binlog_pos")[0]
    answer, = replica.ask(f"SELECT MASTER_GTID_WAIT('{position}', {limit})")[0]
    if answer != 0:
        connection = replica.connect()
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            status = cursor.fetchone()
            cursor.execute("SHOW FULL PROCESSLIST")
            processes = [row for row in cursor.fetchall()]
        raise AssertionError(f"not caught up after {limit} s: IO {status['Slave_IO_Running']} {status['Last_IO_Error']}, SQL "
                             f"{status['Slave_SQL_Running']} {status['Last_SQL_Error']}, {status['Gtid_IO_Pos']}; {processes}")
    return time.monotonic() - began


def compare(primary, replica):
    expected, found = primary.contents(), replica.contents()
    for table in TABLES:
        lacking = set(expected[table]) ^ set(found[table])
        assert not lacking, f"{table} differs: {sorted(lacking)[:5]}"
    if replica.engine == "Pantile":
        by_index = replica.ask("SELECT COUNT(*) FROM rep.note a JOIN rep.note b FORCE INDEX (v) ON b.v = CONCAT('x', a.t) AND b.id = a.id")
        notes = sum(text is not None for _, text in found["note"])
        assert by_index[0][0] == notes, f"{by_index[0][0]} of {notes} notes are found by the index"
    total = sum(n for _, n in found["account"])
    assert total == 0, f"the sum is {total}"
    return len(found["journal"])


def engines_are(server):
    found = server.ask("SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = 'rep'")
    assert [engine for engine, in found] == [server.engine], found


def one_way(script, stop, directory, engines, rounds, rand, mode=None, form=None, logs=None):
    mode = mode or rand.choice(["optimistic", "conservative"])
    # The level is that of an applier only if there is one; those that work in parallel have the server's.
    threads = 4 if form else rand.choice([0, 4, 4])
    form = form or rand.choice(["ROW", "MIXED"])
    level = rand.choice(["READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"])
    options = [f"--slave-parallel-threads={threads}", f"--binlog-format={form}", "--gtid-pos-auto-engines=Pantile"]
    primary = Server(script, f"{directory}/{engines[0]}-primary", 1, engines[0], *options)
    # Without a log of its own the engine alone keeps the order of commits.
    logs = rand.choice([True, False]) if logs is None else logs
    replica = Server(script, f"{directory}/{engines[1]}-replica", 2, engines[1], *options, f"--transaction-isolation={level}",
                     f"--log-slave-updates={int(logs)}")
    primary.ask("CREATE USER rep@'127.0.0.1' IDENTIFIED BY 'rep'", "GRANT REPLICATION SLAVE ON *.* TO rep@'127.0.0.1'")
    begin_replication(replica, primary, mode)
    primary.ask("CREATE DATABASE rep", "USE rep", "CREATE TABLE account (id INT PRIMARY KEY, n BIGINT NOT NULL)",
                "CREATE TABLE journal (id BIGINT PRIMARY KEY AUTO_INCREMENT, client INT, t VARCHAR(3000), KEY (client))",
                "CREATE TABLE note (id INT PRIMARY KEY, t VARCHAR(100) CHARSET utf8mb4)",
                "INSERT INTO account SELECT seq, 0 FROM seq_0_to_19")
    await_caught_up(primary, replica)
    engines_are(primary)
    engines_are(replica)
    # An index of the replica's own, over a column that the log does not have. With InnoDB it becomes corrupt.
    if replica.engine == "Pantile":
        replica.ask("SET sql_log_bin = 0",
                    "ALTER TABLE rep.note ADD COLUMN v VARCHAR(110) CHARSET utf8mb4 AS (CONCAT('x', t)) VIRTUAL INVISIBLE, ADD KEY v (v)")
    for kill in range(1, rounds + 1):
        clients = [Client(primary, n, rand.random()) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        # A kill before anything is committed shows nothing. One that has failed is told of below.
        servers.eventually("something is committed", lambda: any(client.count or client.error for client in clients))
        for _ in range(3):
            time.sleep(rand.uniform(0.1, 0.5))
            set_read_only(replica)
        victim = rand.choice([primary, replica])
        victim.kill()
        if victim is replica:
            time.sleep(rand.uniform(0, 0.3))
        for client in clients:
            client.done.set()
        for client in clients:
            client.join()
            assert client.error is None, f"before the kill: {client.error!r}"
        victim.start()
        if victim is replica:
            begin_replication(replica, primary, mode)
        took = await_caught_up(primary, replica)
        rows = compare(primary, replica)
        who = "primary" if victim is primary else "replica"
        print(f"{engines[0]} to {engines[1]}, {threads} {mode}, {form}, {level}, {'with' if logs else 'without'} a log, kill {kill} of the {who}: "
              f"{sum(client.count for client in clients)} transactions, {rows} rows, caught up in {took:.1f} s", flush=True)
    for server in [primary, replica]:
        subprocess.run([stop, server.directory], check=True)


def main():
    script, stop, directory, rounds, seed = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    print(f"{rounds} kills each, seed {seed}", flush=True)
    rand = random.Random(seed)
    # The first two have each met a fault that the others do not.
    ways = [("InnoDB", "Pantile", "optimistic", "MIXED", True), ("Pantile", "Pantile", "conservative", "ROW", True),
            ("Pantile", "InnoDB", None, None, None), ("InnoDB", "Pantile", "optimistic", "ROW", False)]
    if rounds > 1:
        ways += [("InnoDB", "Pantile", None, None, None), ("Pantile", "Pantile", None, None, None)]
    for number, (first, second, *how) in enumerate(ways):
        one_way(script, stop, f"{directory}/{number}", (first, second), rounds, rand, *how)
    print("replicas have what their primaries have")


main()
