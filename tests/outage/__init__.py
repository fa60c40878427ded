"""What clients and people get while PostgreSQL or Valkey is away, and how soon it is over."""
