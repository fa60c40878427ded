"""Costly schemas are read and compared in child processes that can be killed: `Pool.run(verb, …)`.

`cache` and `codec` are shared by both sides, `child` is its program and what it can do, `process` one child as its
parent sees it, `pool` the children together.
"""
