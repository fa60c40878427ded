"""The pages of streaming queries and their state: lists, variables, and the restart check."""
