"""`python -m shim` is `kafka-shim`."""

import sys

from shim.cli import main

sys.exit(main())
