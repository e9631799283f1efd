"""Transactional workloads and their harnesses: Java producers on a string, crash at every step, the soak."""
