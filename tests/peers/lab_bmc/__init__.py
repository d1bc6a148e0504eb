"""A BMC that can be updated, as a process of its own; see `lab.py` for the tests' side of it."""
