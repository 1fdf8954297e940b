from siltpump.cli import main

raise SystemExit(main())
