"""Faults that inference engines have shipped, each by a name and what a user expects instead.

A test that holds one carries `@pytest.mark.hazard("name")`; test_hazards.py fails while one of them
has no test.
"""

HAZARDS: dict[str, str] = {
    "split-utf8": "A character split over tokens appears whole; the prompt is never echoed.",
    "stop-strings": "A stop string is found across tokens; streamed text equals whole text.",
    "reasoning-tags": "Holding text back for a stop string never tears a </think> apart.",
    "double-bos": "A chat prompt starts with one beginning-of-sequence token, the template's.",
    "final-assistant": "A final assistant message is a finished turn unless told to continue it.",
    "cache-namespace": "Prefixes are shared only inside one model, revision and tenant salt.",
    "cache-hit-numerics": "An answer is the same whether its prefix was cached or computed.",
    "preemption-tokens": "Preemption loses no token and repeats none.",
    "preemption-seed": "A seeded answer is the same with and without preemption.",
    "batch-numerics": "int8 answers do not depend on the other requests of the batch.",
    "tp-beyond-heads": "Ranks beyond the KV heads share them; norms stay whole.",
    "tied-embeddings": "A tied output head is right on every plan; a redundant one is ignored.",
    "padded-vocabulary": "An id the tokenizer does not know is never drawn.",
    "bias-out-of-range": "A logit bias for a token that does not exist is refused with 400.",
    "not-a-number": "Numbers that are not finite fail one request, never its neighbours.",
    "rope-unknown": "Rotary scaling is applied as declared; an unknown type refuses to load.",
    "window-and-cache": "A sliding-window model answers the same the first and the fourth time.",
    "expert-weights": "Experts are weighted over all of them; renormalising and scaling are apart.",
    "rotary-order": "q and k rows are put in the order their architecture needs.",
    "shard-index": "A missing, extra or unread tensor refuses the checkpoint.",
    "truncated-tool-call": "A tool call cut by its limit ends with `length`, streamed or not.",
    "grammar-in-step": "The grammar advances exactly with the tokens; white space is bounded.",
    "disconnect": "A client that hangs up frees its blocks within a step.",
    "disconnect-session": "A hang-up harms no other conversation and leaks no block.",
    "context-overflow": "Too long a prompt is a clear 400; nothing is cut in silence.",
    "penalty-scope": "Penalties look at their own request: repetition at prompt and answer, "
    "presence and frequency at the answer.",
    "top-k-top-p": "Top-k and top-p together always leave a token; top_k=1 is greedy.",
    "logprob-ids": "Log-probabilities never name a token that does not exist.",
    "priority-order": "Priority is strict, ageing lifts who waits, nobody is lost.",
    "blocked-head": "One request that lacks memory does not stall those behind it for ever.",
    "terminal-event": "Every request ends with exactly one terminal event.",
}
