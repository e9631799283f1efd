"""The fast path of one API: requests about which there is nothing to decide, from frame to frame without an object for
each field. `Api.plain` is one, or None.

The dispatcher asks it where no fault is armed, no client has a quota and no request is logged. It answers, or has done
nothing, or says what it has done; whatever it does is what the handler would have done."""

from typing import Any

class BrokerEnd:
    """The base of `broker.Broker`, which explains the fields: those that each request asks for. None until they are
    set."""

    authorizer: Any
    clock: Any
    faults: Any
    groups: Any
    quotas: Any

class FaultsEnd:
    """The base of `faults.Faults`, which explains the field."""

    armed: bool

class PlainApi:
    @property
    def answered(self) -> int:
        """How many error codes the last answer had."""

    @property
    def answered_code(self) -> int:
        """Which error code they all are."""

class PlainMember(PlainApi):
    """Of requests of group members. No authorizer, and no virtual clock, whose members are noted. What raises has done
    nothing, or had memory end: the handler meets it again."""

class PlainLookup(PlainApi):
    """Of requests that change nothing and are answered as they are read. No authorizer, and no frame that the handler
    serves in steps. What raises is met again by the handler."""

class PlainAppend(PlainApi):
    """Of requests that append to a log. No authorizer. Each says itself what an exception has left behind."""
