"""``python -m ascsim.cli``."""

from ascsim.cli import main

main()
