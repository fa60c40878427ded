"""The interface to the engines of the formats: cheap schemas in this process, costly ones in worker processes."""
