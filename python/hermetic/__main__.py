"""`python -m hermetic` is the command `hermetic`."""

from __future__ import annotations

import sys

from hermetic._console import main

sys.exit(main())
