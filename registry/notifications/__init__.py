"""Who is told of what: an inbox for people, signed webhooks for programs."""
