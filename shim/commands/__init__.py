"""Subcommands of `kafka-shim`, one noun a file. `shim.cli` imports a file when its noun is asked for."""
