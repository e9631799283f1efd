"""Where the packages are, the extensions and their compiler flags; all metadata is in pyproject.toml.

What is imported is one name, ``kafka_shim``: `ROOTS` says which folder of the repository holds which package.

Environment: ``KAFKA_SHIM_ASAN=1`` builds with AddressSanitizer, ``KAFKA_SHIM_LINETRACE=1`` with line tracing for
coverage, ``KAFKA_SHIM_WERROR=1`` makes C warnings errors (on in the project's own builds),
``KAFKA_SHIM_EXTENSIONS=0`` leaves the extensions out: an editable install beside a build of them in place.

``setup.py links`` only brings the tree of links under ``build/names`` up to date, in an instant.
"""

import itertools
import os
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ASAN = os.environ.get("KAFKA_SHIM_ASAN") == "1"
LINETRACE = os.environ.get("KAFKA_SHIM_LINETRACE") == "1"
EXTENSIONS = os.environ.get("KAFKA_SHIM_EXTENSIONS") != "0"
WERROR = os.environ.get("KAFKA_SHIM_WERROR") == "1"

# No debug information: making it takes a quarter of the compiler's time, and the machine code is the same without it.
COMPILE = ["-O3", "-g0", "-fno-plt", "-Wall", "-Wsign-compare", "-Wno-unused-function"]
# `dlopen` has a library of its own in glibc before 2.34.
LINK: list[str] = ["-ldl"] if sys.platform == "linux" else []
MACROS: list[tuple[str, str | None]] = []
if WERROR:
    COMPILE += ["-Werror"]
if ASAN:
    COMPILE += ["-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"]
    LINK += ["-fsanitize=address"]
if LINETRACE:
    MACROS += [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]

ROOTS = {
    "kafka_shim": "shim",
    "kafka_shim.cext": "cext",
    "kafka_shim.targets": "targets",
    "kafka_shim.spark": "spark",
    "kafka_shim.compat": "compat_tests",
}
# `kafka_shim/` as a tree of links to the folders above, for what looks for files and not for modules: Cython's cimport,
# mypy, and PYTHONPATH of a build that is not installed.
LINKS = Path("build/names/kafka_shim")

# C sources that a module needs besides its own .pyx; Cython writes cext/NAME.c, so they need another name.
C_SOURCES = {"crc32c": ["cext/crc32c_native.c"]}
# The numbers of what was compiled so far.
COMPILED = itertools.count(1)


def package_dirs() -> dict[str, str]:
    """Folder by package, without tests; an image's build has only some of the folders."""
    found = {}
    for package, folder in ROOTS.items():
        if Path(folder, "__init__.py").is_file():
            found[package] = folder
            for inner in find_packages(folder, exclude=["tests", "tests.*", "*.tests", "*.tests.*"]):
                found[f"{package}.{inner}"] = f"{folder}/{inner.replace('.', '/')}"
    return found


def make_links() -> None:
    """Make `LINKS` what the folders hold now; a process that reads it meanwhile finds every link whole."""
    LINKS.mkdir(parents=True, exist_ok=True)
    # An image's build has the folders one after the other.
    wanted = {path.name: path.resolve() for path in Path("shim").glob("*") if path.name != "__pycache__"}
    wanted |= {
        name.split(".")[1]: Path(folder).resolve()
        for name, folder in ROOTS.items()
        if "." in name and Path(folder).is_dir()
    }
    for link in LINKS.iterdir():
        if link.name not in wanted or not link.is_symlink() or link.readlink() != wanted[link.name]:
            link.unlink() if link.is_symlink() else shutil.rmtree(link)
    for name, target in wanted.items():
        if not (LINKS / name).is_symlink():
            (LINKS / name).symlink_to(target)


def extensions() -> list[Extension]:
    found = []
    # The largest first, so that the last ones to compile are short and all CPUs are busy to the end.
    for pyx in sorted(Path("cext").glob("*.pyx"), key=lambda path: -path.stat().st_size):
        name = pyx.stem
        found.append(
            Extension(
                f"kafka_shim.cext.{name}",
                [str(pyx), *C_SOURCES.get(name, [])],
                extra_compile_args=COMPILE,
                extra_link_args=LINK,
                define_macros=MACROS,
                depends=[str(header) for header in Path("cext").glob("*.h")],
            )
        )
    if not found:
        raise SystemExit("no cext/*.pyx here: without them the package would install and not run")
    return found


def need_compiler(command: str, include_dirs: list[str]) -> None:
    """Raise SystemExit with one line if nothing can be compiled here. The translation takes a minute, and what the
    compiler says of each module is pages long."""
    if shutil.which(command) is None:
        raise SystemExit(f"error: a C compiler is needed, and there is no {command} (Debian: apt-get install gcc)")
    places = [*include_dirs, *os.environ.get("CPATH", "").split(os.pathsep)]
    if not any(Path(place, "Python.h").is_file() for place in places):
        raise SystemExit(
            f"error: Python.h is needed, and is not in {include_dirs[-1]} (Debian: apt-get install python3-dev)"
        )


class AtomicBuildExt(build_ext):
    """Translates the modules on all cores, and compiles them. Replaces a module by rename: a process that runs the old
    one keeps its pages. Prints a line for each module that was compiled.
    """

    def finalize_options(self):  # type: ignore[no-untyped-def]
        super().finalize_options()
        # An editable install drops the options that `setup` is given.
        if self.parallel is None:
            self.parallel = os.cpu_count()

    def build_extensions(self):  # type: ignore[no-untyped-def]
        # Not before `setup`: metadata and source distributions need no C files, and no compiler.
        need_compiler(self.compiler.compiler_so[0], self.compiler.include_dirs)
        translated = cythonize(
            self.extensions,
            include_path=[str(LINKS.parent)],
            build_dir="build/cython",
            nthreads=os.cpu_count() or 1,
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "initializedcheck": False,
                "cdivision": True,
                "linetrace": LINETRACE,
            },
        )
        for extension, made in zip(self.extensions, translated, strict=True):
            extension.sources, extension.depends = made.sources, made.depends
        super().build_extensions()

    def build_extension(self, ext):  # type: ignore[no-untyped-def]
        super().build_extension(ext)
        # The modules are compiled by several threads; the next number of a counter is taken by one of them only.
        # A line is one write, so that two of them do not mix.
        sys.stdout.write(f"compiled {next(COMPILED)} of {len(self.extensions)} extensions: {ext.name}\n")
        sys.stdout.flush()

    def copy_file(self, infile, outfile, **options):  # type: ignore[no-untyped-def]
        target = Path(outfile)
        if target.suffix != ".so":
            return super().copy_file(infile, outfile, **options)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copy2(infile, partial)
        partial.replace(target)
        return str(target), 1


def run_setup() -> None:
    packages = package_dirs()
    setup(
        packages=list(packages),
        # Only the roots: an editable install maps each of them, and finds tests below them too.
        package_dir={package: folder for package, folder in packages.items() if package in ROOTS},
        ext_modules=extensions() if EXTENSIONS else [],
        cmdclass={"build_ext": AtomicBuildExt},
    )


# Cython translates in child processes, which on some platforms import this file under another name.
if __name__ == "__main__":
    make_links()
    if sys.argv[1:] != ["links"]:
        run_setup()
