"""The pages of the inbox, subscriptions, webhooks and their deliveries."""
