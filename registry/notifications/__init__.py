"""Notifications: an inbox for people, signed webhooks for programs."""
