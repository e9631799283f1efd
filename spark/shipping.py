"""What spark-submit ships to a cluster whose machines have nothing of this project: ``kafka-shim-spark ship FOLDER``.

A wheel will not do: Spark puts archives of Python on the path of its workers by their suffix, and ``.whl`` is none that
it knows.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import click

ARCHIVE, JOB = "kafka_shim.zip", "job.py"
# What the jobs and their tasks import. Compiled modules could not be imported from an archive, and none is needed.
PACKAGES = ("kafka_shim.spark", "kafka_shim.history")
ENTRY = "from kafka_shim.spark.command_line import main\n\nmain()\n"
# zip's earliest: the same sources give the same archive.
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write(folder: Path) -> tuple[Path, Path]:
    """Writes ``kafka_shim.zip`` (for ``--py-files``) and ``job.py`` (the program) of the installed package into
    ``folder``, which is made. Returns both paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive, job = folder / ARCHIVE, folder / JOB
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        _add(file, _home("kafka_shim") / "__init__.py", "kafka_shim/__init__.py")
        for package in PACKAGES:
            home = _home(package)
            for path in sorted(home.rglob("*.py")):
                inside = path.relative_to(home)
                if "tests" not in inside.parts:
                    _add(file, path, f"{package.replace('.', '/')}/{inside.as_posix()}")
    job.write_text(ENTRY)
    return archive, job


def _home(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _add(file: zipfile.ZipFile, path: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, path.read_bytes())


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def main(folder: Path) -> None:
    """Write what spark-submit ships into FOLDER, and print its command line."""
    from kafka_shim.spark.session import PACKAGES as CONNECTORS

    archive, job = write(folder)
    click.echo(f"spark-submit --master ... --packages {','.join(CONNECTORS)} --py-files {archive} {job} stream --help")
