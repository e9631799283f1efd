"""The report of a run: text for the terminal, a summary in Markdown, JSON, and one self-contained HTML page."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kafka_shim.compat.differences import reason_for
from kafka_shim.compat.runner import FAILED, NOT_APPLICABLE, PASSED, Difference, Results, differences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.compat.scenarios import Scenario

BEGIN, END = "<!-- compat: begin -->", "<!-- compat: end -->"
PAGE = Path(__file__).with_name("report.html")


@dataclass
class Verdict:
    """The comparison of a scenario's transcripts on the first target and on another."""

    scenario: str
    other: str
    unexpected: list[Difference]
    allowed: list[tuple[Difference, str]]


@dataclass
class Report:
    scenarios: Sequence[Scenario]
    kinds: Sequence[str]
    results: Results
    seconds: float

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One for each scenario that ran on the first target and on another."""
        found = []
        first = self.kinds[0]
        for scenario in self.scenarios:
            ours = self.results[scenario.name][first]
            for other in self.kinds[1:]:
                theirs = self.results[scenario.name][other]
                if NOT_APPLICABLE in (ours.status, theirs.status):
                    continue
                verdict = Verdict(scenario.name, other, [], [])
                for difference in differences(ours, theirs):
                    reason = reason_for(scenario.name, difference)
                    if reason is None:
                        verdict.unexpected.append(difference)
                    else:
                        verdict.allowed.append((difference, reason))
                found.append(verdict)
        return found

    @property
    def is_good(self) -> bool:
        """Nothing failed, and every difference is an allowed one."""
        return not any(self.count(kind, FAILED) for kind in self.kinds) and not any(v.unexpected for v in self.verdicts)

    @property
    def second_tries(self) -> list[tuple[str, str, str]]:
        """(scenario, target, why) of each result that is not the first. Never of the shim."""
        return [
            (scenario.name, kind, outcome.second_try)
            for scenario in self.scenarios
            for kind, outcome in self.results[scenario.name].items()
            if outcome.second_try
        ]

    def count(self, kind: str, status: str) -> int:
        return sum(self.results[scenario.name][kind].status == status for scenario in self.scenarios)

    @cached_property
    def rows(self) -> dict[str, list[Scenario]]:
        """Scenarios by row of docs/SEMANTICS.md."""
        found: dict[str, list[Scenario]] = {}
        for scenario in self.scenarios:
            for row in scenario.rows:
                found.setdefault(row, []).append(scenario)
        return dict(sorted(found.items(), key=lambda item: (item[0][0], int(item[0][1:] or 0))))

    @cached_property
    def clients(self) -> dict[str, int]:
        """The number of scenarios over each stock client."""
        named = [scenario.client for scenario in self.scenarios if scenario.client]
        return {client: named.count(client) for client in sorted(set(named))}

    def text(self) -> str:
        """For the terminal: counts by row and client, then every failure and unexpected difference."""
        lines = ["", "scenarios by row: " + "  ".join(f"{row} {len(found)}" for row, found in self.rows.items())]
        if self.clients:
            lines.append("over clients: " + "  ".join(f"{client} {count}" for client, count in self.clients.items()))
        for kind in self.kinds:
            counts = [f"{self.count(kind, status)} {status}" for status in (PASSED, FAILED, NOT_APPLICABLE)]
            lines.append(f"{kind}: {', '.join(counts)}")
        for scenario in self.scenarios:
            for kind, outcome in self.results[scenario.name].items():
                if outcome.status == FAILED:
                    lines.append(f"{scenario.name} failed on {kind}: {outcome.reason.strip()}")
        for scenario_name, kind, why in self.second_tries:
            lines.append(f"second try: {scenario_name} on {kind}, which at first {why}")
        for verdict in self.verdicts:
            start = f"{verdict.scenario} differs from {verdict.other}"
            lines += [f"{start}: {difference}" for difference in verdict.unexpected[:6]]
        for other in self.kinds[1:]:
            mine = [verdict for verdict in self.verdicts if verdict.other == other]
            equal = sum(not verdict.unexpected for verdict in mine)
            allowed = sum(len(verdict.allowed) for verdict in mine)
            agreement = f"{equal} of {len(mine)} scenarios ({allowed} allowed differences)"
            lines.append(f"{self.kinds[0]} agrees with {other} in {agreement}")
        lines.append(f"in {self.seconds:.0f} s")
        return "\n".join(lines)

    def markdown(self) -> str:
        """The summary that README shows."""
        lines = [
            f"{len(self.scenarios)} scenarios over {len(self.rows)} rows of [docs/SEMANTICS.md](docs/SEMANTICS.md):",
            "",
            "| Target | Passed | Failed | Not applicable | Agrees with the shim |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for kind in self.kinds:
            mine = [verdict for verdict in self.verdicts if verdict.other == kind]
            agrees = f"{sum(not verdict.unexpected for verdict in mine)} of {len(mine)}" if mine else ""
            counts = [self.count(kind, status) for status in (PASSED, FAILED, NOT_APPLICABLE)]
            lines.append(f"| {kind} | {counts[0]} | {counts[1]} | {counts[2]} | {agrees} |")
        if self.clients:
            told = ", ".join(f"{client} ({count})" for client, count in self.clients.items())
            lines += ["", f"Over stock clients: {told}; the others are single requests."]
        return "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """Everything, as plain values."""
        verdicts: dict[str, dict[str, Any]] = {}
        for verdict in self.verdicts:
            verdicts.setdefault(verdict.scenario, {})[verdict.other] = {
                "unexpected": [str(each) for each in verdict.unexpected],
                "allowed": len(verdict.allowed),
                "reasons": sorted({reason for _, reason in verdict.allowed}),
            }
        return {
            "targets": list(self.kinds),
            "clients": list(self.clients),
            "seconds": round(self.seconds, 1),
            "scenarios": [
                {
                    "name": scenario.name,
                    "behaviour": scenario.behaviour,
                    "client": scenario.client,
                    "rows": scenario.rows,
                    "title": scenario.title,
                    "outcomes": {
                        kind: {
                            "status": outcome.status,
                            "reason": outcome.reason,
                            "seconds": round(outcome.seconds, 3),
                            "steps": outcome.steps,
                        }
                        for kind, outcome in self.results[scenario.name].items()
                    },
                    "verdicts": verdicts.get(scenario.name, {}),
                }
                for scenario in self.scenarios
            ],
        }

    def write(self, folder: Path) -> None:
        """report.json, report.md and report.html."""
        folder.mkdir(parents=True, exist_ok=True)
        data = json.dumps(self.data(), default=str, ensure_ascii=False)
        (folder / "report.json").write_text(data + "\n")
        (folder / "report.md").write_text(self.markdown() + "\n")
        # "</" would end the script element that holds the data.
        page = PAGE.read_text().replace("/*DATA*/null", data.replace("</", "<\\/"))
        (folder / "report.html").write_text(page)


def write_readme(path: Path, told: Report) -> None:
    """Puts the summary between the two marks."""
    text = path.read_text()
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    path.write_text(pattern.sub(lambda _: f"{BEGIN}\n{told.markdown()}\n{END}", text))
