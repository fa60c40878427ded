"""The inbox, subscriptions, webhooks and their deliveries."""
