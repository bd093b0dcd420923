"""``python -m kproba.cli``."""

import sys

from . import main

sys.exit(main())
