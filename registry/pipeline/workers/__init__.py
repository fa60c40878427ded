"""Code that runs in Spark's Python workers.

Its functions are sent by value with the query: the workers need fastavro, protobuf and pyarrow, but not this package.
So no module here imports anything else from `registry` or keeps state.
"""
