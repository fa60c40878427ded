"""Costly schemas are read and compared in child processes that can be killed: `Pool.run(verb, …)`.

`cache` and `codec` are shared by both sides, `jobs` is what a child can do, `child` its program, `process` one child
as its parent sees it, `pool` the children together.
"""
