"""The fast path of one API (ADR 49): it reads an ordinary request in its frame and writes the frame of the answer,
without a message object. `Api.plain` is an instance, or None.

The dispatcher calls it unless a fault is armed, a client has a quota or requests are logged. A request about which a
rule has to decide is left to the handler. The fast path then has changed nothing, or returns what it has changed.
Its changes and answers are those of the handler.

A subclass says in its docstring which requests it serves. `PlainAppend`, `PlainLookup` and `PlainMember` are the bases
for requests that append, that only read, and that come from members of groups."""

from typing import Any

class BrokerBase:
    """The base of `broker.Broker`: the fields that each request reads. `Broker` documents them. None until they are
    set."""

    authorizer: Any
    clock: Any
    faults: Any
    groups: Any
    quotas: Any

class FaultsBase:
    """The base of `faults.Faults`, which documents the field."""

    armed: bool

class PlainApi:
    @property
    def answered(self) -> int:
        """The number of error codes in the last answer, for the metrics of responses."""

    @property
    def answered_code(self) -> int:
        """The one error code that all of them are: ErrorCode.NONE unless the subclass says otherwise."""

class PlainMember(PlainApi):
    """The base for requests of group members. It serves none with an authorizer, nor with a virtual clock, for which
    the handlers note the members. After an exception the handler serves the request again: nothing was changed, or
    memory ran out."""

class PlainLookup(PlainApi):
    """The base for requests that change nothing: the answer is written while the request is read. It serves none with
    an authorizer, nor one that is so large that the handler serves it in steps. After an exception the handler serves
    the request again."""

class PlainAppend(PlainApi):
    """The base for requests that append to a log. It serves none with an authorizer. Exceptions pass: each subclass
    handles its own, as only it knows what was appended."""
