"""Other ways of asking for a chat: each is translated to the request that
`/v1/chat/completions` takes, and what comes back to its own words. Pure but for `road.py`."""
