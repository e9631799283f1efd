"""Error responses of any API to a request that failed as a whole: the error is at the top level, or in every requested
entry. Also what is done about error messages that are too long for any response.

If such a response cannot be derived from the message tables, the handler module has a function `failed(request,
version, code, message)`. It returns the response, or the steps that make one that grows with the request. `dispatch`
imports this module at the start, because a failure may be that no file can be opened.
"""

from __future__ import annotations

import sys
from types import GeneratorType

from kafka_shim.protocol.message import has_version
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.api import Api
    from kafka_shim.errors import ErrorCode
    from kafka_shim.protocol.message import Message
    from kafka_shim.turns import Steps

# Fields that identify an entry and have different names in a request and its response.
_NAMES = ("name", "topic", "topic_name", "resource_name", "group_id", "key", "transactional_id")
_INDEXES = ("partition_index", "partition", "index")
# The longest string of the protocol, and how much is left of an error message that is longer.
LONGEST_STRING_BYTES = 0x7FFF
SHOWN_CHARACTERS = 1000


def failure(api: Api, version: int, request: Any, code: ErrorCode, message: str | None) -> Any:
    """Returns the response to `request` with `code`, and with `message` if it has a field for one."""
    return at_once(failure_in_steps(api, version, request, code, message))


def failure_in_steps(api: Api, version: int, request: Any, code: ErrorCode, message: str | None) -> Steps[Any]:
    """As `failure`, of a request that may have very many entries."""
    special = getattr(sys.modules[api.module_name], "failed", None)
    if special is not None:
        made = special(request, version, code, message)
        return (yield from made) if made.__class__ is GeneratorType else made
    response: Any = api.response()
    yield from _fill(response, request, version, code, message)
    return response


def _fill(answer: Any, asked: Any, version: int, code: ErrorCode, message: str | None) -> Steps[None]:
    fields = {row[0] for row in answer.FIELDS if has_version(row[2], version)}
    if "error_code" in fields:
        answer.error_code = code
        if "error_message" in fields:
            answer.error_message = message
        return
    arrays = [row for row in answer.FIELDS if row[1].startswith("[]") and row[0] in fields and len(row) < 7]
    lists = [getattr(asked, row[0]) for row in asked.FIELDS if row[1].startswith("[]") and has_version(row[2], version)]
    for row, entries in zip(arrays, lists, strict=False):
        struct = getattr(sys.modules[answer.__class__.__module__], row[1][2:], None)
        if struct is None:
            continue
        for entry in entries or ():
            one = struct()
            _identify(one, entry)
            yield from _mark(one, entry, version, code, message)
            getattr(answer, row[0]).append(one)
            yield


def _mark(answer: Any, asked: Any, version: int, code: ErrorCode, message: str | None) -> Steps[None]:
    if hasattr(asked, "FIELDS"):
        yield from _fill(answer, asked, version, code, message)
    elif hasattr(answer, "error_code"):
        answer.error_code = code
        if any(row[0] == "error_message" and has_version(row[2], version) for row in answer.FIELDS):
            answer.error_message = message


def _identify(answer: Message, asked: Any) -> None:
    """Copy the fields that identify an entry: fields of the same name, else a name to a name and an index to an
    index."""
    own = {row[0]: row[1] for row in answer.FIELDS}
    if not hasattr(asked, "FIELDS"):
        candidates = _INDEXES if isinstance(asked, int) else _NAMES
        _set_first(answer, own, candidates, asked)
        return
    for row in asked.FIELDS:
        name, value = row[0], getattr(asked, row[0])
        if own.get(name) == row[1] and not row[1].startswith("[]"):
            setattr(answer, name, value)
        elif name in _NAMES:
            _set_first(answer, own, _NAMES, value)
        elif name in _INDEXES:
            _set_first(answer, own, _INDEXES, value)


def _set_first(answer: Message, own: dict[str, str], candidates: tuple[str, ...], value: object) -> None:
    for name in candidates:
        if name in own:
            setattr(answer, name, value)
            return


def shorten_messages(message: Any) -> Steps[bool]:
    """Cut the error messages of a response that are longer than a string may be: a name that the client has sent is in
    them. Returns whether there was one."""
    is_shorter = False
    for row in message.FIELDS:
        value = getattr(message, row[0])
        if isinstance(value, str):
            if row[0].endswith("error_message") and len(value.encode()) > LONGEST_STRING_BYTES:
                setattr(message, row[0], f"{value[:SHOWN_CHARACTERS]}...")
                is_shorter = True
        elif isinstance(value, list) and value and hasattr(value[0], "FIELDS"):
            for one in value:
                is_shorter = (yield from shorten_messages(one)) or is_shorter
                yield
    return is_shorter
