"""The guard that a transactional Produce takes while its transaction is being verified (KIP-890; B9)."""

from __future__ import annotations


class Verification:
    """One check under way for (partition, producer id). Compared by identity: a marker in between replaces it."""

    __slots__ = ("lowest_sequence", "producer_epoch", "producer_id", "supports_epoch_bump")

    def __init__(self, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.lowest_sequence = base_sequence
        self.supports_epoch_bump = supports_epoch_bump
