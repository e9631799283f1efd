"""Builds ``dist/kafka-shim``, one executable for machines without Python, from a wheel.

The wheel (``--wheel``, else made by scripts/wheels.py) is installed into an empty environment of ``--python``, and
PyInstaller packs what is there: the interpreter, its libraries, and the command line with metrics and console; not the
jobs of Spark nor the compatibility bench, which need an installed Python anyway. At each start the file unpacks itself
into a temporary folder, which it removes at its end. Prints the size and the oldest glibc that the file runs on: that
of the Python that it is built with.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

MAKES_SPEC = "PyInstaller.utils.cliutils.makespec"
ROOT = Path(__file__).resolve().parent.parent
ENTRY = "import sys\nfrom kafka_shim.cli import main\nsys.exit(main())\n"
# Imported by name, or late, where PyInstaller does not see it; and what the broker does not run.
LEFT_OUT = ("kafka_shim.spark", "kafka_shim.compat", "kafka_shim.targets", "kafka_shim.pytest_plugin")
UNUSED = ("tkinter", "unittest", "pydoc", "doctest", "lib2to3", "distutils", "setuptools", "pip", "sqlite3", "curses")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The output of a command. Raises ClickException with its end when it fails."""
    line = [str(word) for word in command]
    done = subprocess.run(line, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise click.ClickException(f"{' '.join(line)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def oldest_glibc(python: Path, executable: Path) -> str:
    """The newest symbol version of glibc that any file packed into the executable asks for."""
    code = """
import re, sys
from PyInstaller.archive.readers import CArchiveReader
archive = CArchiveReader(sys.argv[1])
content = b"".join(archive.extract(name) for name, entry in archive.toc.items() if entry[-1] == "b")
print("{}.{}".format(*max((int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\\d+)\\.(\\d+)", content))))
"""
    return run(python, "-c", code, executable).strip()


def modules_of(python: Path) -> list[str]:
    """Every module of the installed package that the executable holds."""
    walk = "import pkgutil, kafka_shim as k; print(*(m.name for m in pkgutil.walk_packages(k.__path__, 'kafka_shim.')"
    walk += f" if not m.name.startswith({LEFT_OUT!r})), sep='\\n')"
    return run(python, "-c", walk, cwd=Path("/")).split()


def do_not_compress(spec: Path) -> None:
    """Have the libraries stored as they are: a start takes far longer to decompress them than to copy them."""
    text = spec.read_text()
    name = "    name='kafka-shim',\n"
    if text.count(name) != 1:
        raise click.ClickException(f"PyInstaller has written another form of {spec.name}:\n{text[-2000:]}")
    spec.write_text(text.replace(name, f"{name}    cdict={{}},\n"))


def build(wheel: Path, python: Path, out: Path) -> tuple[Path, str]:
    """Returns the executable and the oldest glibc that it runs on."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run(python, "-m", "venv", place / "env")
        made = place / "env" / "bin" / "python"
        run(made, "-m", "pip", "install", "--quiet", f"{wheel}[metrics]", "pyinstaller>=6.10")
        (place / "kafka-shim.py").write_text(ENTRY)
        line: list[str | Path] = [made, "-m", MAKES_SPEC, "--name", "kafka-shim", "--strip", "--onefile"]
        for module in modules_of(made):
            line += ["--hidden-import", module]
        for module in (*LEFT_OUT, *UNUSED):
            line += ["--exclude-module", module]
        line += ["--collect-data", "kafka_shim.console", "--copy-metadata", "kafka-shim", "kafka-shim.py"]
        run(*line, cwd=place)
        do_not_compress(place / "kafka-shim.spec")
        run(made, "-m", "PyInstaller", "--noconfirm", "--distpath", "file", "kafka-shim.spec", cwd=place)
        out.mkdir(parents=True, exist_ok=True)
        target = Path(shutil.copy2(place / "file" / "kafka-shim", out))
        return target, oldest_glibc(made, target)


@click.command(help=__doc__.split("\n\n")[0] if __doc__ else "")
@click.option("--wheel", type=click.Path(path_type=Path, exists=True), help="The wheel to pack; made when left out.")
@click.option("--python", type=click.Path(path_type=Path), default=Path(sys.executable), help="What the file holds.")
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="The folder of the result.")
def main(wheel: Path | None, python: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            run(sys.executable, ROOT / "scripts" / "wheels.py", "--python", python, "--out", folder)
            wheel = next(Path(folder).glob("*.whl"))
        made, glibc = build(wheel.resolve(), python, out.resolve())
    click.echo(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB, runs on glibc {glibc} and newer")


if __name__ == "__main__":
    main()
