"""The verification guard of a transactional Produce request (KIP-890; B9; Kafka: VerificationGuard)."""

from __future__ import annotations


class Verification:
    """A pending verification for (partition, producer id). It is compared by identity: if a marker arrives during the
    verification, the guard is removed and no longer matches."""

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
        """Add another waiting batch of the same producer. The guard keeps the lowest sequence of the newest epoch."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = base_sequence
