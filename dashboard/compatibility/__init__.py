"""The compatibility report of a proposed schema, and the simulator of reads and read-modify-writes."""
