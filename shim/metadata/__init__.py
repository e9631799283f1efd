"""The metadata log in KRaft's format, and the image replayed from it."""
