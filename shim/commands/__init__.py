"""Subcommands of `kafka-shim`, one noun a file. `kafka_shim.cli` imports a file when its noun is asked for."""
