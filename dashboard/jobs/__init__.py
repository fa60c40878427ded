"""The pages of background jobs and of their runs."""
