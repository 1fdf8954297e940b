"""Entry point of ``python -m sched``."""

from sched.cli import main

raise SystemExit(main())
