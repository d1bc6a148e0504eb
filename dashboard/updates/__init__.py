"""The steps of a firmware update, and the one runner that takes it from state to state."""
