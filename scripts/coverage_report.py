"""Prints the coverage of Python and Cython that lies in the working directory.

Cython's plugin knows a .pxd only after it has read the C file of a .pyx that uses it, so the .pyx files come first;
``coverage report`` takes them in the order of a set.
"""

import coverage


def main() -> None:
    measured = coverage.Coverage()
    measured.load()
    measured.report(morfs=sorted(measured.get_data().measured_files(), key=lambda path: (path.endswith(".pxd"), path)))


if __name__ == "__main__":
    main()
