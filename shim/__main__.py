"""`python -m kafka_shim` is `kafka-shim`."""

import sys

from kafka_shim.cli import main

sys.exit(main())
