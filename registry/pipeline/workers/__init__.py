"""What runs inside Spark's Python workers.

Its functions are sent with the query, by value: the workers need fastavro, protobuf and pyarrow, but not this package.
So nothing in here imports anything of `registry`, nor keeps state in a module.
"""
