"""The contestants, each run as `python -m engine.bench.compare.players.NAME`.

Peers run in their own interpreters, so what is here needs nothing but Python's own library and the
one engine that a module is named after.
"""
