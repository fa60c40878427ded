"""Programs that create the demo's input: real producers and a real streaming query, all without Django."""
