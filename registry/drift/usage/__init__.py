"""Where versions and subjects are used, and which of them can be retired."""
