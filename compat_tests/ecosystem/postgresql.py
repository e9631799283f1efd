"""A PostgreSQL of Debian's packages with logical decoding, for a part that reads its changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.compat.ecosystem.base import PartError, wait_for
from kafka_shim.compat.upstream.base import Unavailable
from kafka_shim.targets.base import free_ports

PROGRAMS = ("initdb", "postgres", "psql")
USER = "app"
DATABASE = "postgres"
# The server refuses to run as root; Debian's package makes this user.
INSTEAD_OF_ROOT = "postgres"
SETTINGS = """
port={port}
listen_addresses='127.0.0.1'
unix_socket_directories=''
wal_level=logical
fsync=off
"""


def programs() -> Path:
    """The folder of PostgreSQL's programs. Raises Unavailable."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for folder in [*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if all((folder / name).exists() for name in PROGRAMS):
            return folder
    raise Unavailable("no PostgreSQL server on this machine (Debian's package postgresql)")


class Database:
    """A server with an empty database, on a port of its own; its data is gone when it is closed."""

    def __init__(self, log: Path) -> None:
        self._programs = programs()
        self._user = INSTEAD_OF_ROOT if os.geteuid() == 0 else None
        self.port = free_ports(1)[0]
        # Not below the part's folder: the other user may not enter that.
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-shim-postgresql-"))
        if self._user:
            shutil.chown(self._folder, self._user)
        data = self._folder / "data"
        try:
            self._run("initdb", "-D", str(data), "-A", "trust", "-U", USER, "--no-sync")
            with (data / "postgresql.conf").open("a") as file:
                file.write(SETTINGS.format(port=self.port))
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(data)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            user=self._user,
            cwd=self._folder,
        )
        try:
            wait_for("PostgreSQL", lambda: self._ask("select 1", check=False) == 0, log)
        except BaseException:
            self.close()
            raise

    def _run(self, program: str, *words: str, check: bool = True) -> int:
        line = [str(self._programs / program), *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, user=self._user, cwd=self._folder)
        if check and done.returncode:
            raise PartError(f"{program}: {done.stderr[-1000:]}")
        return done.returncode

    def _ask(self, *statements: str, check: bool = True) -> int:
        server = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", DATABASE)
        each = [word for statement in statements for word in ("-c", statement)]
        return self._run("psql", *server, "-X", "-q", "-v", "ON_ERROR_STOP=1", *each, check=check)

    def do(self, *statements: str) -> None:
        """Runs statements, each in a transaction of its own. Raises PartError when one is refused."""
        self._ask(*statements)

    def close(self) -> None:
        # Its fast shutdown: it does not wait for sessions.
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder)
