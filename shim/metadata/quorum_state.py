"""The file `quorum-state` in the metadata log's directory, with the epoch in which this node leads (Kafka:
FileQuorumStateStore).

Version 0 is for a static quorum (kraft.version 0) and lists the voters. Version 1 is for a dynamic quorum and has the
directory id that was voted for.
"""

from __future__ import annotations

import os

from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.regular_files import read_file
from kafka_shim.storage.results import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "quorum-state"
# A start leads in the next epoch, which must be an int32.
MAX_EPOCH = (1 << 31) - 1


class QuorumStateError(StorageError):
    """The `quorum-state` file cannot be read. The message says why."""


class QuorumState:
    """The contents of the file: leader id, leader epoch, voters, and the format version."""

    __slots__ = ("leader_epoch", "leader_id", "version", "voters")

    def __init__(self, version: int, leader_id: int, leader_epoch: int, voters: list[int]) -> None:
        self.version = version
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voters = voters


def read(directory: Path) -> QuorumState | None:
    """Return the state in `directory`, or None if the file is missing or empty. Raises QuorumStateError."""
    path = directory / FILE_NAME
    try:
        content = read_file(os.fspath(path))
    except FileNotFoundError:
        return None
    if not content.strip():
        return None
    import json

    try:
        fields = json.loads(content.decode("utf-8").splitlines()[0])
        version = fields["data_version"]
        if version not in (0, 1):
            raise QuorumStateError(f"{path}: data_version {version} is not 0 or 1")
        voters = [int(voter["voterId"]) for voter in fields.get("currentVoters") or []]
        epoch = int(fields["leaderEpoch"])
        if not 0 <= epoch < MAX_EPOCH:
            raise _damaged(path, f"the epoch {epoch} is none")
        return QuorumState(version, int(fields["leaderId"]), epoch, voters)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as err:
        raise _damaged(path, f"{type(err).__name__}: {err}") from err


def _damaged(path: Path, reason: str) -> QuorumStateError:
    return QuorumStateError(f"{path} is damaged ({reason}): remove it, the next start writes a new one from the log")


def write(directory: Path, state: QuorumState) -> None:
    """Replace and fsync the file, because an epoch must never have a second leader. Raises OSError."""
    if state.version == 0:
        voters = ",".join(f'{{"voterId":{voter}}}' for voter in state.voters)
        text = (
            f'{{"clusterId":"","leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":-1,'
            f'"appliedOffset":0,"currentVoters":[{voters}],"data_version":0}}'
        )
    else:
        text = (
            f'{{"leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":-1,'
            f'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}}'
        )
    replace_file(os.fspath(directory / FILE_NAME), text.encode(), sync=True)
