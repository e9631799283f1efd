"""The parts of a profile (`bench.profile`): which one a sample is of."""

from __future__ import annotations

from bench.profile import KERNEL, PARTS, conditions, counted, part_of, table

SCRIPT = """\
\tffffffff822010c9 _raw_spin_unlock_irqrestore ([kernel.kallsyms])
\tffffffff81e32fbe sock_def_readable ([kernel.kallsyms])
\tffffffff82012345 tcp_sendmsg ([kernel.kallsyms])
\tffffffff816b95d8 vfs_write ([kernel.kallsyms])
\t           f838f __GI___libc_write (/usr/lib/libc.so.6)

\tffffffffc0123456 nf_conntrack_in ([nf_conntrack])
\tffffffff82012345 sock_write_iter ([kernel.kallsyms])

\tffffffff816c72df ext4_da_write_begin ([kernel.kallsyms])
\tffffffff816b95d8 vfs_write ([kernel.kallsyms])

\tffffffff816c72df asm_sysvec_apic_timer_interrupt ([kernel.kallsyms])
\t          1af857 _PyObject_Malloc (/usr/lib/libpython3.11.so.1.0)

\t          1af857 _PyObject_Malloc (/usr/lib/libpython3.11.so.1.0)
\t               0 [unknown] ([unknown])

\t            5857 __pyx_f_serve (inlined) (/tree/cext/plain_produce.so)

\t             857 clock_gettime ([vdso])
"""


def test_a_sample_is_counted_once_by_the_functions_on_its_stack():
    """A write to a socket also passes through what writes to files do; a module of the kernel is the kernel."""
    assert counted(SCRIPT.splitlines(keepends=True)) == {
        "sockets: write": 2,
        "files": 1,
        "kernel, other": 1,
        "interpreter": 1,
        "extension modules": 1,
        "C library, other": 1,
    }


def test_each_part_of_the_kernel_is_found_by_any_of_its_functions():
    for name, functions in KERNEL:
        for function in functions:
            assert part_of([("copy", "[kernel.kallsyms]"), (function, "[kernel.kallsyms]")]) == name
    assert part_of([]) == "C library, other"


def test_a_row_is_in_microseconds_of_one_and_the_kernel_is_the_sum_of_its_parts():
    parts = dict.fromkeys(PARTS, 0.0) | {"sockets: write": 0.25, "epoll": 0.25, "interpreter": 0.5}
    found = {
        "began": "2001-01-01 00:00 UTC",
        "machine": {"cpus": 2, "cpu": "any"},
        "cases": {"one": {"cpu_us": 40.0, "samples": 4, "parts": parts}},
    }
    row = [cell.strip() for cell in table(found).splitlines()[-1].strip("|").split("|")]
    assert row == ["one", "40", "20", *(_shown(40 * parts[name]) for name in PARTS)]
    assert conditions(found) == "2001-01-01 00:00 UTC, 2 CPUs (any), the machine as it is."


def _shown(microseconds: float) -> str:
    return f"{microseconds:.0f}" if microseconds >= 10 else f"{microseconds:.1f}"
