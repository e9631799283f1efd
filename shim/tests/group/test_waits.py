"""A JoinGroup or SyncGroup that only waits for others is served without a decision (`waits` of `classic_join` and
`classic_sync`). The answers, the group and its timers must be those of the rules that decide all others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.group import classic_join, classic_sync
from kafka_shim.randomness import Randomness
from kafka_shim.tests.group.harness import SESSION_MS, Later, Node

STEPS = 400
SEEDS = range(8)
MODULES = (classic_join, classic_sync)
# Of a member.
FIELDS = (
    *("member_id", "instance_id", "client_id", "protocols", "assignment", "is_new"),
    *("session_timeout_ms", "rebalance_timeout_ms"),
)
# Protocols that a member may name: most of them fit.
PROTOCOLS = [(("range", b"one"),)] * 6 + [(("range", b"two"), ("sticky", b"x")), (("other", b""),), ()]


class Members:
    """Applications that mostly do what they should, some of them with errors. All is decided by one seed."""

    def __init__(self, node: Node, seed: int) -> None:
        self.node = node
        self.chance = random.Random(seed)
        self.ids: list[str] = []
        self.joined: dict[str, Any] = {}
        self.waiting: list[tuple[str, Any]] = []

    def step(self) -> list[str]:
        """Do something. Returns every answer that came, in the order of the requests."""
        acts = [*[self.first] * 2, *[self.join] * 6, *[self.sync] * 6, *[self.beat] * 2, self.leave, *[self.later] * 3]
        act = self.chance.choice(acts)
        came = [repr(act())]
        for name, asked in list(self.waiting):
            if asked.is_done:
                self.waiting.remove((name, asked))
                came.append(f"{name}: {asked.response!r}")
                if name and asked.response.generation_id > 0:
                    self.joined[asked.response.member_id] = asked.response
        return came

    def _any(self) -> str:
        return self.chance.choice(["", "nobody"] if self.chance.random() < 0.05 else self.ids[-6:] or [""])

    def _ask(self, name: str, answer: Any) -> Any:
        if isinstance(answer, Later):
            self.waiting.append((name, answer))
            return "waits"
        if name and answer.generation_id > 0:
            self.joined[answer.member_id] = answer
        return answer

    def first(self) -> Any:
        version = self.chance.choice([9, 9, 9, 3])
        answer = self.node.join("g", version=version, protocols=self.chance.choice(PROTOCOLS))
        if not isinstance(answer, Later) and answer.member_id:
            self.ids.append(answer.member_id)
        return self._ask("join", answer)

    def join(self) -> Any:
        instance_id = "static" if self.chance.random() < 0.05 else None
        said = {"protocols": self.chance.choice(PROTOCOLS), "group_instance_id": instance_id}
        return self._ask("join", self.node.join("g", self._any(), **said))

    def sync(self) -> Any:
        if not self.joined:
            return None
        newest = max(each.generation_id for each in self.joined.values())
        late = [each for each in self.joined.values() if each.generation_id >= newest - (self.chance.random() < 0.1)]
        known = self.chance.choice(late)
        assigned = {each.member_id: each.member_id.encode()[-4:] for each in known.members}
        fields = {"generation_id": known.generation_id + self.chance.choice([0] * 9 + [1])}
        if self.chance.random() < 0.1:
            fields["protocol_name"] = self.chance.choice([None, "wrong"])
        return self._ask("", self.node.sync("g", known, assigned, **fields))

    def beat(self) -> Any:
        return self._refused(lambda known: self.node.beat("g", known))

    def leave(self) -> Any:
        return self._refused(lambda known: self.node.leave("g", known.member_id))

    def later(self) -> Any:
        return self.node.advance(self.chance.choice([0, 1, SESSION_MS / 9, SESSION_MS / 3]))

    def _refused(self, request: Callable[[Any], Any]) -> Any:
        if not self.joined:
            return None
        try:
            return request(self.joined[self.chance.choice(list(self.joined))])
        except Exception as error:  # whatever it is, both ways must raise it
            return error


def known(node: Node) -> Any:
    """What the broker knows of the group, without the times of day."""
    group: Any = node.groups.find("g")
    if group is None:
        return None
    members = [
        [getattr(each, name) for name in FIELDS] + [each.awaiting_join is not None, each.awaiting_sync is not None]
        for each in group.members.values()
    ]
    timers = sorted((key, node.timers.due_in_ms(key)) for key in node.timers._entries)
    phase = group.state, group.previous_state, group.generation_id, group.leader_id, group.protocol
    sets = sorted(group.joining), list(group.pending_joins), sorted(group.pending_syncs), group.static_members
    return members, timers, phase, sets, group.protocol_counts, group.metadata_bytes, group.new_member_added


def run(path: Path, seed: int) -> list[Any]:
    node = Node(path, group_max_size=4 if seed % 2 else 1000, group_initial_rebalance_delay_ms=seed % 3 * 1000)
    try:
        node.clock.random = Randomness(seed)
        members = Members(node, seed)
        return [(members.step(), known(node)) for _ in range(STEPS)]
    finally:
        node.close()


def test_what_only_waits_waits_as_the_rules_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: Counter[str] = Counter()

    def counted(module: Any, waits: Callable[..., bool]) -> Callable[..., bool]:
        def called(*arguments: Any) -> bool:
            found = waits(*arguments)
            served[module.__name__.rsplit("_", 1)[1]] += found
            return found

        return called

    for seed in SEEDS:
        with monkeypatch.context() as patch:
            for module in MODULES:
                patch.setattr(module, "waits", counted(module, module.waits))
            short = run(tmp_path / f"short-{seed}", seed)
        with monkeypatch.context() as patch:
            for module in MODULES:
                patch.setattr(module, "waits", lambda *arguments: False)
            decided = run(tmp_path / f"decided-{seed}", seed)
        for number, (one, other) in enumerate(zip(short, decided, strict=True)):
            assert one == other, f"seed {seed}, step {number}"
    assert min(served["join"], served["sync"]) > 20, served
