"""The metadata log in KRaft's format, and the metadata image that is replayed from it."""
