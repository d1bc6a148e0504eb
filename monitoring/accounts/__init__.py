"""What readings add up to: energy, money, quiet. Pure but for the reading."""
