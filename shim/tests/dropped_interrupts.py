"""A program that gets Ctrl-C where Python drops what is raised: `interrupt_where_it_is_dropped` does not return."""

from __future__ import annotations

# The callback of a weak reference is such a place, and each import ends with one.
DROPPED = """
import signal, time, weakref

class Target:
    pass

def interrupt_where_it_is_dropped():
    target = Target()
    watched = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
    del target
    while True:  # signal.pause() would wait for ever if the next signal came just before it
        time.sleep(0.01)
"""
