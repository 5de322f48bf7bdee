"""`python -m placevalue.cli`, for launchers that start modules."""

import sys

from placevalue.cli.main import main

sys.exit(main())
