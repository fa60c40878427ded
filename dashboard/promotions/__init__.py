"""The pages of promotion requests: the list, the form of a new one, and a request's page."""
