"""The subcommands of `kafka-shim`, one noun per file. `kafka_shim.cli` imports a file when its noun is used."""
