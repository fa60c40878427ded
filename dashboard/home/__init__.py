"""The home page: pending work, requests in progress, health, and the first steps."""
