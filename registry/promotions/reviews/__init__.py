"""Reviews: who may review, what was decided, affected consumers, and accounts that count as one person."""
