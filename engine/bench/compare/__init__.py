"""The engine beside what one would use instead, in one run on one machine.

Every contestant is a process of its own that speaks JSON lines (`players/`), and waits, stopped,
while another one is measured. Rounds take turns: A B C, A B C. See docs/benchmark.md.
"""
