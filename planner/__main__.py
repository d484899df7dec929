"""``python -m planner`` is the command ``plan``."""

from planner.cli import main

main()
