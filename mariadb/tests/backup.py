"""An online backup beside transactions that write to InnoDB and ENGINE=Pantile: the restored server has both as of one
point of the binary log, and the log from there leads to what the source has in the end.

usage: backup.py SCRIPTS WORK SECONDS
"""

import os
import random
import subprocess
import sys
import threading
import time

import pymysql

SCRIPTS, WORK, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
SOURCE, COPY, BACKUP = f"{WORK}/source", f"{WORK}/copy", f"{WORK}/backup"
ACCOUNTS, WRITERS = 50, 4


# A mariadb-backup that fails the first time, as it does now and then beside a server that writes much.
LATE = """#!/bin/sh
if mkdir "$0.tried" 2>/dev/null; then
  echo '[00] Was only able to copy log from 44404 to 1683446, not 1685947; try increasing innodb_log_file_size'
  exit 1
fi
exec "$PANTILE_MARIADB_BINARIES/mariadb-backup" "$@"
"""


def run(*command, **environment):
    done = subprocess.run(command, text=True, capture_output=True, env={**os.environ, **environment})
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def connect(directory):
    return pymysql.connect(unix_socket=f"{directory}/socket", user="root", autocommit=True)


def ask(connection, statement):
    cursor = connection.cursor()
    cursor.execute(statement)
    return list(cursor.fetchall())


def fill(connection):
    ask(connection, "CREATE DATABASE bank"), ask(connection, "USE bank")
    for engine in ("InnoDB", "Pantile"):
        ask(connection, f"CREATE TABLE bank.{engine} (id INT PRIMARY KEY, n BIGINT NOT NULL, writer INT, KEY (n)) ENGINE={engine}")
        ask(connection, f"INSERT INTO bank.{engine} SELECT seq, 100, 0 FROM seq_1_to_{ACCOUNTS}")
        # What each writer has committed last.
        ask(connection, f"CREATE TABLE bank.count_{engine} (writer INT PRIMARY KEY, n BIGINT NOT NULL) ENGINE={engine}")
        ask(connection, f"INSERT INTO bank.count_{engine} SELECT seq, 0 FROM seq_1_to_{WRITERS}")


class Writer(threading.Thread):
    """Moves amounts within and between both tables, the same ones in both, and counts."""

    def __init__(self, number, over):
        # If a check fails, nothing waits for it.
        super().__init__(daemon=True)
        self.number, self.over, self.commits, self.longest, self.problem = number, over, 0, 0.0, None

    def run(self):
        try:
            self.work()
        except Exception as problem:  # told by the main thread
            self.problem = problem

    def work(self):
        connection, chance = connect(SOURCE), random.Random(self.number)
        while not self.over.is_set():
            one, other, amount = chance.randint(1, ACCOUNTS), chance.randint(1, ACCOUNTS), chance.randint(1, 9)
            began = time.time()
            try:
                ask(connection, "BEGIN")
                for engine in ("InnoDB", "Pantile"):
                    ask(connection, f"UPDATE bank.{engine} SET n = n - {amount}, writer = {self.number} WHERE id = {one}")
                    ask(connection, f"UPDATE bank.{engine} SET n = n + {amount}, writer = {self.number} WHERE id = {other}")
                    ask(connection, f"UPDATE bank.count_{engine} SET n = n + 1 WHERE writer = {self.number}")
                ask(connection, "COMMIT")
                self.commits += 1
            except pymysql.err.OperationalError as error:
                assert error.args[0] in (1213, 1205, 1020), error
                ask(connection, "ROLLBACK")
            self.longest = max(self.longest, time.time() - began)


def state(connection):
    found = [ask(connection, f"SELECT * FROM bank.{table} ORDER BY 1") for table in ("InnoDB", "Pantile", "count_InnoDB", "count_Pantile")]
    assert sum(row[1] for row in found[0]) == 100 * ACCOUNTS, "InnoDB has half a transaction"
    assert sum(row[1] for row in found[1]) == 100 * ACCOUNTS, "Pantile has half a transaction"
    assert found[0] == found[1] and found[2] == found[3], "InnoDB and Pantile are not of one moment"
    return found


def replay(file, position):
    """Everything in the binary log from there on, to the copy."""
    logs = sorted(name for name in os.listdir(f"{SOURCE}/data") if name.startswith("binlog.0") and name >= file)
    binaries = os.environ["PANTILE_MARIADB_BINARIES"]
    events = subprocess.run([f"{binaries}/mariadb-binlog", "--no-defaults", f"--start-position={position}"] +
                            [f"{SOURCE}/data/{name}" for name in logs], capture_output=True)
    assert events.returncode == 0, events.stderr
    client = [f"{binaries}/mariadb", "--no-defaults", "--user=root", f"--socket={COPY}/socket"]
    done = subprocess.run(client, input=events.stdout, capture_output=True)
    assert done.returncode == 0, done.stderr


def refusals(connection):
    """A backup says what is in its way."""
    def fails(statement, number, text):
        try:
            ask(connection, statement)
        except pymysql.err.MySQLError as error:
            assert error.args[0] == number and text in error.args[1], error
            return
        raise AssertionError(f"{statement} succeeded")

    fails("SET GLOBAL pantile_backup_to = ''", 1105, "a directory that is empty")
    fails(f"SET GLOBAL pantile_backup_to = '{SOURCE}/data'", 1105, "not empty")
    fails("SET SESSION pantile_backup_to = 'x'", 1229, "SET GLOBAL")
    # In a stage that does not come to its end.
    ask(connection, f"SET GLOBAL pantile_backup_staged = '{WORK}/staged'")
    fails(f"SET GLOBAL pantile_backup_to = '{WORK}/other'", 1105, "another one")
    ask(connection, "FLUSH ENGINE LOGS"), ask(connection, "BACKUP STAGE START"), ask(connection, "BACKUP STAGE END")
    states = dict(ask(connection, "SHOW STATUS LIKE 'pantile_backup%'"))
    assert states["Pantile_backup_state"] == "failed" and "BLOCK_COMMIT" in states["Pantile_backup_message"], states
    # Beside a SERIALIZABLE writer there is no moment that has all that the binary log has.
    other = connect(SOURCE)
    ask(other, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"), ask(other, "BEGIN")
    ask(other, "UPDATE bank.Pantile SET n = n + 1 WHERE id = 1")
    ask(connection, "UPDATE bank.Pantile SET n = n WHERE id = 2")
    ask(connection, f"SET GLOBAL pantile_backup_staged = '{WORK}/staged'"), ask(connection, "BACKUP STAGE START")
    ask(connection, "BACKUP STAGE BLOCK_COMMIT"), fails("FLUSH ENGINE LOGS", 1105, "SERIALIZABLE")
    ask(connection, "BACKUP STAGE END"), ask(other, "ROLLBACK")
    # By the statements themselves, with a table that is dropped meanwhile.
    ask(connection, "CREATE TABLE bank.brief (id INT PRIMARY KEY) ENGINE=Pantile")
    ask(connection, f"SET GLOBAL pantile_backup_staged = '{WORK}/staged'"), ask(connection, "BACKUP STAGE START")
    ask(connection, "BACKUP STAGE BLOCK_COMMIT"), ask(connection, "FLUSH ENGINE LOGS"), ask(connection, "BACKUP STAGE END")
    ask(connection, "DROP TABLE bank.brief")
    until = time.monotonic() + 600
    while (states := dict(ask(connection, "SHOW STATUS LIKE 'pantile_backup%'")))["Pantile_backup_state"] == "copying":
        assert time.monotonic() < until, f"it copies for ten minutes: {states}"
        time.sleep(0.1)
    assert states["Pantile_backup_state"] == "complete" and os.path.exists(f"{WORK}/staged/pantile.data"), states
    # A user that may not set variables may not make backups.
    ask(connection, "CREATE USER guest")
    guest = pymysql.connect(unix_socket=f"{SOURCE}/socket", user="guest")
    try:
        ask(guest, f"SET GLOBAL pantile_backup_to = '{WORK}/guest'")
    except pymysql.err.OperationalError as error:
        assert error.args[0] == 1227, error
    assert not os.path.exists(f"{WORK}/guest")


def main():
    source = connect(SOURCE)
    fill(source)
    refusals(source)
    over = threading.Event()
    writers = [Writer(number, over) for number in range(1, WRITERS + 1)]
    for writer in writers:
        writer.start()
    time.sleep(SECONDS)
    before = sum(writer.commits for writer in writers)
    with open(f"{WORK}/late", "w") as late:
        late.write(LATE)
    os.chmod(f"{WORK}/late", 0o755)
    said = run(f"{SCRIPTS}/backup", SOURCE, BACKUP, MARIADB_BACKUP=f"{WORK}/late")
    print(said, end="", flush=True)
    assert said.count("has not caught up with InnoDB's log: there is another attempt") >= 1, said
    during = sum(writer.commits for writer in writers) - before
    time.sleep(SECONDS)
    over.set()
    for writer in writers:
        writer.join()
    for writer in writers:
        assert writer.problem is None, writer.problem
    assert during > 0, "nothing was written beside the backup"
    expected = state(source)
    print(run(f"{SCRIPTS}/restore", BACKUP, COPY), end="", flush=True)
    run(f"{SCRIPTS}/start", COPY, "--server-id=2")
    copy = connect(COPY)
    found = state(copy)
    commits = sum(row[1] for row in found[2])
    assert before <= commits <= sum(writer.commits for writer in writers), (before, commits)
    with open(f"{BACKUP}/xtrabackup_binlog_info") as info:
        file, position = info.read().split()[:2]
    replay(file, position)
    assert state(copy) == expected, "the binary log from the backup on does not lead to the source"
    longest = max(writer.longest for writer in writers)
    print(f"backup: {commits} transactions in it, {during} while it was made, the longest took {longest:.3f} s; "
          f"{sum(writer.commits for writer in writers) - commits} more from the binary log lead to the source's state")


main()
