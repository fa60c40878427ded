"""Programs that make the demo's input: real producers and a real streaming query, none of them knows Django."""
