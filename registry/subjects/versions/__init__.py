"""Reading what is registered: qualified names, lookup from names to rows, versions, their status and their parsed schemas."""
