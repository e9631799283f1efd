"""The users and ACLs with which an embedded broker begins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kafka_shim.embedded_security import EmbeddedSecurity
    from kafka_shim.server import Server


class FirstRecords:
    """Stored at the first start with some data. They may be changed then, and are not stored again in the same data:
    it is known by the id of its directory, as it may be exchanged while the broker is stopped."""

    def __init__(self, security: EmbeddedSecurity | None, acls: Sequence[Mapping[str, object]]) -> None:
        self._security = security
        self._acls = tuple(acls)
        self._directory: str | Path = ""
        self._stored_in = ""
        self._is_stored = False

    @property
    def principals(self) -> tuple[str, ...]:
        """Those of the ACLs."""
        return tuple(str(one.get("principal")) for one in self._acls)

    def begin(self, directory: str | Path) -> None:
        """A start begins, whose metadata is in this directory. Raises OSError, StorageError if it was there before and
        cannot be read: what was removed of them would come back."""
        self._directory = directory
        self._is_stored = bool(self._stored_in) and _id_of(directory) == self._stored_in

    def end(self) -> None:
        """The broker has started. Raises OSError, StorageError if the directory cannot be read."""
        if not self._is_stored and (self._security is not None or self._acls):
            self._stored_in = _id_of(self._directory)

    async def store(self, server: Server) -> None:
        """Store them, unless they are. Call it on the broker's thread. Raises KafkaError, ConfigError."""
        from kafka_shim.serve import store_acls

        if self._is_stored:
            return
        if self._security is not None:
            self._security.add_users(server.broker)
        await store_acls(server, self._acls)

    def line(self) -> str:
        """What a child process reads of its standard input, and stores before it is ready; empty if there is nothing to
        store. Raises ConfigError here rather than in the child."""
        users = None if self._security is None else self._security.scram_users
        if self._is_stored or not (users or self._acls):
            return ""
        import json

        from kafka_shim.security.acl_spec import parse_acl

        for one in self._acls:
            parse_acl(one)
        mechanism = None if self._security is None else self._security.sasl
        return json.dumps({"mechanism": mechanism, "users": users, "acls": self._acls}) + "\n"


def _id_of(directory: str | Path) -> str:
    """Empty where there is none. Raises OSError, StorageError."""
    from kafka_shim.storage.data_dir import DataDir

    return DataDir(str(directory)).read_meta().get("directory.id", "")
