"""The interface to the engines of the schema formats: cheap schemas in this process, costly ones in worker processes."""
