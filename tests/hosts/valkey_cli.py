"""A stand-in for valkey-cli: sends a command to the Valkey of this host, signed in with REDISCLI_AUTH."""

from __future__ import annotations

import os
import sys

import redis

words = [word for word in sys.argv[1:] if word != "-e"]
try:
    print(redis.Redis(password=os.environ.get("REDISCLI_AUTH")).execute_command(*words))
except redis.RedisError as error:
    raise SystemExit(str(error)) from error
