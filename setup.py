"""Extensions and compiler flags of ``cext``; all metadata is in pyproject.toml.

Environment: ``KAFKA_SHIM_ASAN=1`` builds with AddressSanitizer, ``KAFKA_SHIM_LINETRACE=1`` with line tracing for
coverage, ``KAFKA_SHIM_WERROR=1`` makes C warnings errors (on in the project's own builds).
"""

import os
import shutil
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ASAN = os.environ.get("KAFKA_SHIM_ASAN") == "1"
LINETRACE = os.environ.get("KAFKA_SHIM_LINETRACE") == "1"
WERROR = os.environ.get("KAFKA_SHIM_WERROR") == "1"

COMPILE = ["-O3", "-fno-plt", "-Wall", "-Wsign-compare", "-Wno-unused-function"]
LINK: list[str] = []
MACROS: list[tuple[str, str | None]] = []
if WERROR:
    COMPILE += ["-Werror"]
if ASAN:
    COMPILE += ["-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"]
    LINK += ["-fsanitize=address"]
if LINETRACE:
    MACROS += [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]

# C sources that a module needs besides its own .pyx; Cython writes cext/NAME.c, so they need another name.
C_SOURCES = {"crc32c": ["cext/crc32c_native.c"]}


def extensions() -> list[Extension]:
    found = []
    for pyx in sorted(Path("cext").glob("*.pyx")):
        name = pyx.stem
        found.append(
            Extension(
                f"cext.{name}",
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


class AtomicBuildExt(build_ext):
    """Replaces a module by rename: a process that runs the old one keeps its pages."""

    def copy_file(self, infile, outfile, **options):  # type: ignore[no-untyped-def]
        target = Path(outfile)
        if target.suffix != ".so":
            return super().copy_file(infile, outfile, **options)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copy2(infile, partial)
        partial.replace(target)
        return str(target), 1


setup(
    ext_modules=cythonize(
        extensions(),
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "linetrace": LINETRACE,
        },
    ),
    cmdclass={"build_ext": AtomicBuildExt},
    options={"build_ext": {"parallel": os.cpu_count()}},
)
