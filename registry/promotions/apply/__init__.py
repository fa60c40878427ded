"""Applying approved requests: the run and its schedule, steps at a local registry, steps at a remote one."""
