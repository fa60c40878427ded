"""The text of .proto files: read as statements, resolved, completed for the compiler, and written."""
