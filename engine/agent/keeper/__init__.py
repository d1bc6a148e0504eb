"""A small process that keeps one engine process while agents come and go."""
