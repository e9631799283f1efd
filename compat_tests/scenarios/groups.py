"""Rows C: groups of both protocols and their offsets: each conversation of ``compat_tests.groups`` is a scenario, and
what their state says after a kill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.groups.conversations import CONVERSATIONS
from compat_tests.groups.script import Script
from compat_tests.scenarios import scenario
from compat_tests.scenarios.talk import NONE, Talk, name_of, warm_up
from compat_tests.targets import Power


def _register(name: str, conversation: Callable[[Script], None]) -> None:
    def run(t: Talk) -> None:
        warm_up(t.target)
        script = Script(t.target.bootstrap, t.nonce)
        try:
            conversation(script)
        finally:
            script.close()
            t.steps += [(what, "", answer) for what, answer in script.said]

    run.__name__ = name
    run.__doc__ = conversation.__doc__ or f"{name.replace('_', ' ').capitalize()}."
    scenario("C")(run)


for _name, _conversation in CONVERSATIONS.items():
    _register(_name, _conversation)


@scenario("C", needs=Power.KILL, is_smoke=False)
def offsets_come_back_after_a_kill(t: Talk) -> None:
    """Committed offsets, with their metadata, are back after a kill; so is the group, Empty."""
    topic, group = t.topic(partitions=2), t.name("g")
    warm_up(t.target)
    rows = [{"partition_index": at, "committed_offset": at + 5, "committed_metadata": f"m{at}"} for at in range(2)]
    fields = {"generation_id_or_member_epoch": -1, "topics": [{"name": topic, "partitions": rows}]}
    answer = t.ask("OffsetCommit", 9, group_id=group, **fields)
    t.same([name_of(part.error_code) for part in answer.topics[0].partitions], [NONE, NONE], "errors")
    asked: dict[str, Any] = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 1]}]}
    for kill in (True, False):
        t.restart(kill=kill)
        answer = t.ask("OffsetFetch", 9, groups=[asked])
        found = [(part.committed_offset, part.metadata) for part in answer.groups[0].topics[0].partitions]
        t.same(found, [(5, "m0"), (6, "m1")], "offsets")
        t.ask("DescribeGroups", 5, groups=[group])
