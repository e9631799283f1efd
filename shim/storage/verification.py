"""The guard that a transactional Produce takes while its transaction is being verified (KIP-890; B9)."""

from __future__ import annotations


class Verification:
    """One check under way for (partition, producer id). Compared by identity: a marker in between replaces it."""

    __slots__ = ("created_ms", "lowest_sequence", "producer_epoch", "producer_id", "supports_epoch_bump")

    def __init__(
        self, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool, created_ms: int
    ) -> None:
        self.producer_id = producer_id
        self.lowest_sequence = base_sequence
        self.producer_epoch = producer_epoch
        self.supports_epoch_bump = supports_epoch_bump
        self.created_ms = created_ms

    def lower_to(self, base_sequence: int, producer_epoch: int) -> None:
        """Another batch of the same producer is waiting: the lowest sequence of the newest epoch counts."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = base_sequence
