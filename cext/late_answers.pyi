"""The answers to JoinGroup and SyncGroup of members that waited for others, from what the group knows to their frames.

All members of a group are answered together, and each answer is written once. To make a message of it and encode it
takes three times as long. Whoever reads it has the fields of its message as attributes; whoever
changes it changes `message()`."""

from typing import Any

class LateAnswer:
    """One answer, which nobody changes afterwards. It has the attributes of its message."""

    def message(self) -> Any:
        """Returns it as the message of its API."""

    def written(self, correlation_id: int, version: int) -> bytes | None:
        """Returns its frame, or None if the codec has to write it, because it raises an error."""

    def __getattr__(self, name: str) -> Any: ...

class Generation:
    """What all members of a generation are told alike."""

class JoinAnswer(LateAnswer):
    """That a member is in a generation; the leader, who else is."""

class SyncAnswer(LateAnswer):
    """A member's assignment."""
