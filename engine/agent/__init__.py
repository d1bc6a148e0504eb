"""The node agent: joins a machine to the fleet and runs its engine processes."""
