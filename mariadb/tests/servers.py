"""What tests do to servers."""

import os
import signal
import time

# Nothing here takes nearly as long, not even on a slow and busy machine.
PATIENCE = 600


def eventually(what, happens, pause=0.05):
    """Waits until something happens."""
    until = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < until, f"not within {PATIENCE} s: {what}"
        time.sleep(pause)


def is_there(process):
    """Whether it has not ended yet: a killed process may have much to give back."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(process):
    """kill -9; returns when the process has ended."""
    os.kill(process, signal.SIGKILL)
    eventually(f"process {process} ends", lambda: not is_there(process), pause=0.005)


def ask(connection, statements):
    """The answer to the last of them; closes the connection."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        answer = cursor.fetchall()
    connection.close()
    return answer
