"""`Generic` for classes whose parameters only type checkers read: a broker starts without the module `typing`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic
else:

    class Generic:
        __slots__ = ()

        def __class_getitem__(cls, parameters):
            return cls


__all__ = ["Generic"]
