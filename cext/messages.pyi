from typing import Any, TypeVar

from typing_extensions import Buffer

from kafka_shim.cext.wire import EncodeError as EncodeError
from kafka_shim.cext.wire import UnsupportedVersionError as UnsupportedVersionError
from kafka_shim.cext.wire import WireError as WireError

_M = TypeVar("_M")

def decode(cls: type[_M], version: int, buffer: Buffer, start: int = 0, end: int | None = None) -> _M: ...
def decode_prefix(
    cls: type[_M], version: int, buffer: Buffer, start: int = 0, end: int | None = None
) -> tuple[_M, int]: ...
def encode(message: Any, version: int) -> bytes: ...
def encode_parts(message: Any, version: int, head: Buffer = b"") -> list[Any]: ...
def encode_response_frame(correlation_id: int, message: Any, version: int) -> list[Any]: ...
