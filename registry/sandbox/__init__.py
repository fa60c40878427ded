"""Costly schemas are read and compared in child processes that can be killed: `Pool.run(verb, …)`.

Both sides use `cache` and `codec`; `child` is a child's program and its verbs, `process` one child as its parent sees
it, `pool` all children.
"""
