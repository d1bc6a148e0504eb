"""What the fleet is doing and costing. Each page lists its own routes."""
