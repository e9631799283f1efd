"""The table of the kinds of groups: KINDS. A new kind is a row: a subclass of `GroupKind`, and the rules that it
calls.
"""

from __future__ import annotations

from kafka_shim.group.classic_kind import ClassicKind
from kafka_shim.group.consumer_kind import ConsumerKind
from kafka_shim.group.share_kind import ShareKind
from kafka_shim.group.streams.kind import StreamsKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from kafka_shim.group.kind import GroupKind


class _Kinds(dict[str, "GroupKind[Any]"]):
    def __missing__(self, name: str) -> NoReturn:
        raise LookupError(f"unknown kind of group {name!r}: the table of kinds has {', '.join(self)}")


# By the group's type, as ListGroups shows it.
KINDS: Mapping[str, GroupKind[Any]] = _Kinds(
    {kind.name: kind for kind in (ClassicKind(), ConsumerKind(), ShareKind(), StreamsKind())}
)
