"""The report page in a real browser: rows, the filter, transcripts side by side; light and dark, narrow and wide."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kafka_shim.compat.report import BEGIN, END, Report, write_readme
from kafka_shim.compat.runner import FAILED, NOT_APPLICABLE, PASSED, Outcome
from kafka_shim.compat.scenarios import Scenario, load
from kafka_shim.targets import Power

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCRIPT = "</script><script>document.title = 'broken out'</script>"


def _nothing(client: object) -> None:
    """What is shown as the title."""


@pytest.fixture(scope="module")
def report() -> Report:
    names = ["a1-equal", "b2-different", "d13-hostile"]
    scenarios = [Scenario(name, (name.split("-")[0].upper(),), _nothing, Power.WIRE) for name in names]
    step = ("Fetch v12", {"offset": 1}, {"error_code": "NONE", "text": SCRIPT})
    other = ("Fetch v12", {"offset": 1}, {"error_code": "OFFSET_OUT_OF_RANGE", "text": SCRIPT})
    results = {
        "a1-equal": {"shim": Outcome(PASSED, "", [step]), "kafka": Outcome(PASSED, "", [step])},
        "b2-different": {"shim": Outcome(PASSED, "", [step]), "kafka": Outcome(PASSED, "", [other, step])},
        "d13-hostile": {"shim": Outcome(FAILED, SCRIPT, [step]), "kafka": Outcome(NOT_APPLICABLE, "needs INSIDE")},
    }
    for client, theirs in (("java", step), ("kafka-python", other)):
        name = f"c-shared@{client}"
        scenarios.append(Scenario(name, ("C",), _nothing, Power.WIRE, client=client))
        results[name] = {"shim": Outcome(PASSED, "", [step]), "kafka": Outcome(PASSED, "", [theirs])}
    return Report(scenarios, ["shim", "kafka"], results, 1.5)


@pytest.fixture(scope="module")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    report.write(folder)
    return folder / "report.html"


def browse(page: Path, *options: str, fragment: str = "") -> str:
    assert CHROMIUM is not None, "chromium is not installed"
    profile = page.parent / "profile"
    line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *options]
    done = subprocess.run([*line, f"{page.as_uri()}{fragment}"], capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def rows_of(shown: str) -> str:
    return shown.split('<tbody id="body">')[1].split("</tbody>", maxsplit=1)[0]


def after(page: Path, name: str, script: str) -> Path:
    """The page as it is after what a reader does, told as a script."""
    acted = page.with_name(f"{name}.html")
    acted.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
    return acted


def test_counts_and_verdicts(report: Report) -> None:
    assert not report.is_good
    text = report.text()
    assert "shim: 4 passed, 1 failed, 0 not applicable" in text
    assert "shim agrees with kafka in 2 of 4 scenarios (0 allowed differences)" in text
    assert "scenarios by row: A1 1  B2 1  C 2  D13 1" in text
    assert "over clients: java 1  kafka-python 1" in text


def test_the_summary_goes_between_the_marks(report: Report, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_readme(readme, report)
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n5 scenarios over 4 rows")
    assert "| kafka | 4 | 0 | 1 | 2 of 4 |" in text
    assert "Over stock clients: java (1), kafka-python (1)" in text
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text


def test_the_readme_tells_of_the_last_whole_run() -> None:
    """`make compat` writes it; after a new scenario it must run again."""
    readme = Path(__file__).resolve().parents[3] / "README.md"
    told = readme.read_text().split(BEGIN)[1].split(END)[0]
    rows = {row for scenario in load().values() for row in scenario.rows}
    assert f"{len(load())} scenarios over {len(rows)} rows" in told
    targets = [[cell.strip() for cell in line.strip("|").split("|")] for line in told.splitlines() if line[:3] == "| s"]
    assert [(cells[0], cells[1], cells[2]) for cells in targets] == [("shim", str(len(load())), "0")]


def test_a_browser_shows_rows_and_no_script_escapes_from_data(page: Path) -> None:
    shown = browse(page, "--dump-dom")
    body = rows_of(shown)
    assert body.count('class="row"') == 4
    assert body.count("What is shown as the title.") == 4
    assert "<title>kafka-shim: agreement with Apache Kafka</title>" in shown


def test_a_link_opens_transcripts_side_by_side(page: Path) -> None:
    shown = browse(page, "--dump-dom", fragment="#b2-different")
    body = rows_of(shown)
    assert body.count('class="row"') == 1
    assert "--columns: 2" in body
    assert body.count('<pre class="side" data-target="shim">') == 2  # what there is, and that there is no more
    assert body.count('<pre class="side differs" data-target="kafka">') == 2
    assert "OFFSET_OUT_OF_RANGE" in body


def test_a_behaviour_has_a_cell_for_each_client(page: Path) -> None:
    body = rows_of(browse(page, "--dump-dom", fragment="#c-shared@kafka-python"))
    assert body.count('class="row"') == 1
    assert body.count('data-client="java"') == body.count('data-client="kafka-python"') == 2  # one on each target
    assert body.count('aria-pressed="true"') == 2
    assert "over kafka-python" in body
    assert "1 differ" in body


@pytest.mark.parametrize(
    ("chosen", "rows", "chips"),
    [("java", 1, 2), ("kafka-python", 1, 2), ("single requests", 3, 0), ("every client", 4, 4)],
)
def test_the_rows_of_one_client(page: Path, chosen: str, rows: int, chips: int) -> None:
    script = f"by('client').value = '{chosen}'; by('client').dispatchEvent(new Event('change'))"
    body = rows_of(browse(after(page, chosen.replace(" ", "-"), script), "--dump-dom"))
    assert body.count('class="row"') == rows
    assert body.count("data-client=") == chips


def test_a_click_on_a_client_opens_its_transcripts_and_closes_them(page: Path) -> None:
    click = "document.querySelector('[data-client=java][title*=shim]').click();"
    once, twice = (rows_of(browse(after(page, f"click-{n}", click * n), "--dump-dom")) for n in (1, 2))
    assert "over java" in once
    assert "over java" not in twice


@pytest.mark.parametrize(("width", "scheme"), [(1400, 0), (1400, 1), (380, 0), (380, 1)])
def test_it_is_drawn_light_and_dark_narrow_and_wide(page: Path, width: int, scheme: int) -> None:
    picture = page.parent / f"{width}-{scheme}.png"
    options = (f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},800", "--hide-scrollbars")
    browse(page, *options, f"--screenshot={picture}", fragment="#c-shared@java")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    measure = "document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide'"
    shown = browse(after(page, f"measured-{width}", measure), *options, "--dump-dom", fragment="#c-shared@java")
    assert "<title>fits</title>" in shown
