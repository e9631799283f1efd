"""The report page in a real browser: rows, the filter, transcripts side by side; light and dark, narrow and wide."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from compat_tests.report import BEGIN, END, Report, write_readme
from compat_tests.runner import FAILED, NOT_APPLICABLE, PASSED, Outcome
from compat_tests.scenarios import Scenario, load
from compat_tests.targets import Power

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCRIPT = "</script><script>document.title = 'broken out'</script>"


def _nothing(talk: object) -> None:
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


def test_counts_and_verdicts(report: Report) -> None:
    assert not report.is_good
    text = report.text()
    assert "shim: 2 passed, 1 failed, 0 not applicable" in text
    assert "shim agrees with kafka in 1 of 2 scenarios (0 allowed differences)" in text
    assert "scenarios by row: A1 1  B2 1  D13 1" in text


def test_the_summary_goes_between_the_marks(report: Report, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_readme(readme, report)
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n3 scenarios over 3 rows")
    assert "| kafka | 2 | 0 | 1 | 1 of 2 |" in text
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
    body = shown.split('<tbody id="body">')[1].split("</tbody>")[0]
    assert body.count('class="row"') == 3
    assert body.count("What is shown as the title.") == 3
    assert "<title>kafka-shim: agreement with Apache Kafka</title>" in shown


def test_a_link_opens_transcripts_side_by_side(page: Path) -> None:
    shown = browse(page, "--dump-dom", fragment="#b2-different")
    body = shown.split('<tbody id="body">')[1].split("</tbody>")[0]
    assert body.count('class="row"') == 1
    assert "--columns: 2" in body
    assert body.count('<pre class="side" data-target="shim">') == 2  # what there is, and that there is no more
    assert body.count('<pre class="side differs" data-target="kafka">') == 2
    assert "OFFSET_OUT_OF_RANGE" in body


@pytest.mark.parametrize(("width", "scheme"), [(1400, 0), (1400, 1), (380, 0), (380, 1)])
def test_it_is_drawn_light_and_dark_narrow_and_wide(page: Path, width: int, scheme: int) -> None:
    picture = page.parent / f"{width}-{scheme}.png"
    options = (f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},800", "--hide-scrollbars")
    browse(page, *options, f"--screenshot={picture}", fragment="#b2-different")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    measured = page.with_name(f"measured-{width}.html")
    script = (
        "<script>document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide'</script>"
    )
    measured.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    shown = browse(measured, *options, "--dump-dom", fragment="#b2-different")
    assert "<title>fits</title>" in shown
