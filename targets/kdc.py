"""A Kerberos realm for tests: MIT's KDC (Debian: krb5-kdc, krb5-admin-server) on a free port of the loopback, with its
database, its keytabs and its `krb5.conf` in one folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time

from kafka_shim.targets.base import free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

REALM = "SHIM.TEST"
START_SECONDS = 60.0
SEARCHED = "/usr/sbin:/usr/bin:/sbin:/bin"


class Kdc:
    """A running KDC; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.krb5_conf = folder / "krb5.conf"
        self._port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to be in this realm, with a replay cache of its own."""
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5RCACHENAME": f"dfl:{self.folder}",
        }

    def add(self, principal: str) -> Path:
        """Make a principal of the realm, and return a keytab with its key."""
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {principal}")
        if not keytab.exists():
            raise RuntimeError(f"kadmin.local made no keytab for {principal}")
        return keytab

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run([_program(name), *arguments], env=self._full(), capture_output=True, timeout=60, check=True)

    def _full(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def __enter__(self) -> Self:
        address = f"127.0.0.1:{self._port}"
        self.krb5_conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {address}\n }}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {address}\n kdc_tcp_listen = {address}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n }}\n"
        )
        self._run("kdb5_util", "-r", REALM, "create", "-s", "-P", "of-a-test")
        self._process = subprocess.Popen(
            [_program("krb5kdc"), "-n", "-r", REALM, "-P", str(self.folder / "pid")],
            env=self._full(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.close()
                    raise RuntimeError("krb5kdc does not start") from None
                time.sleep(0.02)
            else:
                return self

    def close(self) -> None:
        """End the KDC."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SEARCHED}")
    if found is None:
        raise RuntimeError(f"{name} is missing; on Debian: apt-get install krb5-kdc krb5-admin-server")
    return found


def is_there() -> bool:
    """Return whether this machine has a KDC."""
    return shutil.which("krb5kdc", path=f"{os.environ.get('PATH', '')}:{SEARCHED}") is not None
