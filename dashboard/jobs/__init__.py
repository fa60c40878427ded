"""The page of background jobs and of their runs."""
