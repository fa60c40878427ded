"""What a promotion would do: the plan's types, its steps, the target's state, and how a plan is built."""
