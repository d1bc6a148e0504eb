"""What users, keys and teams may use: counted in Valkey, told by Postgres."""
