"""Client quotas (KIP-13, KIP-124, KIP-219, KIP-599): how much a client used, and how long it is throttled for it."""
