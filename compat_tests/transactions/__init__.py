"""Transactional workloads and their harnesses: controlled Java producers, crashes at every step, the soak test."""
