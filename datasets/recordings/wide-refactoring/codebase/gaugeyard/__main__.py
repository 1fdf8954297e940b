import sys

from gaugeyard.cli import main

sys.exit(main())
