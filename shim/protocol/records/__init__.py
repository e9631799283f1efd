"""Records of internal topics, and other data that is stored, one module each."""
