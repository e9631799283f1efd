"""Builds single extension modules of the tree in the working directory, in place and without optimisation:
``python -m mutation.build MODULE...``."""

from __future__ import annotations

import sys

from Cython.Build import cythonize
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

C_SOURCES = {"crc32c": ["cext/crc32c_native.c"]}
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
}


class InPlace(build_ext):  # type: ignore[misc]
    def get_ext_fullpath(self, ext_name: str) -> str:
        return f"cext/{self.get_ext_filename(ext_name.rpartition('.')[2])}"


def main(modules: list[str]) -> None:
    extensions = [
        Extension(
            f"kafka_shim.cext.{name}", [f"cext/{name}.pyx", *C_SOURCES.get(name, [])], extra_compile_args=["-O0", "-w"]
        )
        for name in modules
    ]
    found = cythonize(  # type: ignore[no-untyped-call]
        extensions,
        include_path=["build/names"],
        build_dir="build/cython",
        force=True,
        quiet=True,
        compiler_directives=DIRECTIVES,
    )
    command = InPlace(Distribution({"ext_modules": found}))
    command.build_temp, command.force, command.inplace = "build/temp", True, False
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    main(sys.argv[1:])
