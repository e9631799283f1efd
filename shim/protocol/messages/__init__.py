"""Requests, responses and headers, one module each."""
