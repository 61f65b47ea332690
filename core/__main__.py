"""`python -m core`: the library from the shell."""

from core.lab.cli import main

raise SystemExit(main())
