"""Pages that scripts write are what the scripts would write now."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from kafka_shim.errors import ErrorCode

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_the_api_coverage_page_is_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "api_coverage.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_counts_the_apis_as_the_coverage_page_does():
    page = (ROOT / "docs" / "api-coverage.md").read_text()
    served, _, known = page.rstrip().rpartition("\n")[2].partition(" APIs")[0].partition(" of ")
    assert served == known
    assert f"It serves all {served} APIs" in (ROOT / "README.md").read_text()


def test_the_figures_of_the_pages_are_those_of_the_committed_run(tmp_path: Path):
    """Each table is what docs/bench.json makes of it, and a changed number is noticed."""
    check = [sys.executable, "scripts/bench_tables.py", "check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("scripts", "bench", "docs", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    for page in ("README.md", "docs/performance.md"):
        text = (tmp_path / page).read_text()
        assert "<!-- bench " in text
        first, table = text.split("<!-- bench ", 1)
        changed = re.sub(r"\d(?= \|)", lambda digit: str((int(digit[0]) + 1) % 10), table, count=1)
        assert changed != table
        (tmp_path / page).write_text(f"{first}<!-- bench {changed}")
        again = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert again.returncode == 1, page
        assert page.rpartition("/")[2] in again.stderr
        (tmp_path / page).write_text(text)


def test_parts_of_a_bench_that_were_run_again_are_named_with_their_time(tmp_path: Path):
    for name in ("scripts", "bench", "docs", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    committed = json.loads((tmp_path / "docs" / "bench.json").read_text())
    later = {name: committed[name] for name in ("settings", "machine")}
    cases = {name: committed["cases"][name] for name in ("crc", "offset commits")}
    later |= {"began": "2001-01-01 00:00 UTC", "parts": ["scale", "groups"], "cases": cases}
    path = tmp_path / "later.json"
    for settings, status in (({}, 1), (later["settings"], 0)):
        path.write_text(json.dumps(later | {"settings": settings}))
        command = [sys.executable, "scripts/bench_tables.py", "merge", str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status, done.stderr
        page = (tmp_path / "docs" / "performance.md").read_text()
        assert ("run of these parts alone, 2001-01-01 00:00 UTC: scale, groups." in page) == (status == 0)
        _, _, runs = page.partition("<!-- bench machines -->")
        assert (", groups 2001-01-01 00:00 UTC" in runs.strip().partition("\n")[0]) == (status == 0)


def test_make_help_says_what_each_target_does():
    done = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    texts = dict(line.removeprefix("make ").split(maxsplit=1) for line in done.stdout.splitlines())
    _, _, targets = (ROOT / "Makefile").read_text().partition(".PHONY: ")
    assert list(texts) == targets.partition("\n")[0].split()
    assert list(texts)[:2] == ["run", "test"]


def build_site(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tree / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def site_tree(tmp_path: Path) -> Path:
    """The documentation's sources, with the rest of the repository as links."""
    for path in ROOT.iterdir():
        if path.name not in {"docs", "build", ".git"}:
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "names").symlink_to(ROOT / "build" / "names")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_site_builds_and_a_broken_link_or_anchor_does_not(site_tree: Path):
    done = build_site(site_tree)
    assert done.returncode == 0, done.stderr
    page = (site_tree / "site" / "compatibility.html").read_text()
    assert "kafka-native" in page
    assert "readme:" not in page
    assert "advance" in (site_tree / "site" / "python-api.html").read_text()
    faq = site_tree / "docs" / "faq.md"
    faq.write_text(faq.read_text() + "\n[a](nowhere.md) [b](metrics.md#nothing)\n")
    done = build_site(site_tree)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert "#nothing" in done.stderr


def test_a_link_of_a_page_that_leaves_docs_names_a_file_of_the_repository():
    hooks = runpy.run_path(str(ROOT / "scripts" / "docs_hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="faq.md"))

    def shown(markdown: str) -> str:
        return hooks["on_page_markdown"](markdown, page=page, config=None, files=None)

    assert shown("[the list](../shim/api/__init__.py#L1)") == "the list (`shim/api/__init__.py`)"
    assert shown("[setup.py](../setup.py) [b](metrics.md#health)") == "`setup.py` [b](metrics.md#health)"
    with pytest.raises(PluginError, match=r"nothing\.py leads nowhere"):
        shown("[c](../shim/nothing.py)")
    with pytest.raises(PluginError, match="no section 'Nothing'"):
        shown("<!-- readme: Nothing -->")


def test_a_nested_list_of_a_page_is_nested_on_the_site_too():
    """GitHub nests a list that is indented by two spaces, Python-Markdown from four on."""
    flat = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        flat += [f"{page.name}: {line}" for line in re.findall(r"^ {1,3}- .*", text, re.MULTILINE)]
    assert flat == []


def test_the_messages_that_are_explained_are_in_the_code():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    own = page.partition("## A client says")[0]
    sources = "".join(path.read_text() for path in (ROOT / "shim").rglob("*.py") if "tests" not in path.parts)
    messages = re.findall(r"^### `(.+)`$", own, re.MULTILINE)
    assert len(messages) > 8
    assert [message for message in messages if message not in sources] == []
    codes = re.findall(r"`([A-Z_]{8,})`", " ".join(re.findall(r"^### (.+)$", page, re.MULTILINE)))
    assert len(codes) > 8
    assert [code for code in codes if code not in ErrorCode.__members__] == []


def test_what_the_pages_import_is_in_the_list_of_names_for_users():
    listed = (ROOT / "docs" / "python-api.md").read_text()
    imported = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        if page.name not in {"DESIGN.md", "python-api.md"}:
            text = page.read_text()
            for module, names in re.findall(r"\bfrom (kafka_shim[\w.]*) import ([\w, ]+)", text):
                imported |= {
                    module if module == "kafka_shim.plugins" else f"{module}.{name}" for name in names.split(", ")
                }
    assert len(imported) >= 5
    assert sorted(name for name in imported if f"`{name}`" not in listed) == []


@pytest.mark.parametrize(
    "folder",
    [
        *("api", "config", "console", "group", "history", "metadata", "monitoring", "quota", "security", "share"),
        *("storage", "telemetry", "txn", "wiretap"),
    ],
)
def test_the_design_page_names_every_module_of_a_part(folder: str):
    page = (ROOT / "docs" / "DESIGN.md").read_text()
    names = {path.name for path in (ROOT / "shim" / folder).rglob("*.py") if path.name != "__init__.py"}
    if folder == "api":  # a handler is found by the key in its name
        names = {name for name in names if not re.match(r"k\d", name)}
    assert names, folder
    assert sorted(name for name in names if not re.search(rf"(?<!\w){re.escape(name)}", page)) == []


def test_the_design_page_names_every_module_of_cext_and_each_that_it_names_is_there():
    page = (ROOT / "docs" / "DESIGN.md").read_text()
    modules = {path.stem for path in (ROOT / "cext").glob("*.pyx")}
    named = set(re.findall(r"\bcext[./](\w+)", page))
    assert sorted(named - modules) == []
    assert sorted(module for module in modules if not re.search(rf"\b{module}\b", page)) == []


def test_the_layers_of_the_design_page_are_those_of_the_code():
    page = (ROOT / "docs" / "DESIGN.md").read_text()
    layers = page[page.index("`cext` <- base") : page.index("`group`, `share`, `txn`, `security` and `quota` do not")]
    files = {path.stem for path in (ROOT / "shim").glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in (ROOT / "shim").glob("*/__init__.py")} - {"tests"}
    apart = {"history", "wire_client", "wiretap"}  # which stand beside the tower
    assert set(re.findall(r"`(\w+)`", layers)) == (files | folders | {"cext"}) - apart
