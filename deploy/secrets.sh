#!/bin/sh
# Writes the secrets of compose.yaml into .env beside it, once; an existing file stays. Only its owner can read it.
set -eu
umask 077
file="$(dirname "$0")/.env"
[ ! -e "$file" ] || exit 0
for name in SECRET_KEY POSTGRES_PASSWORD OWNER_PASSWORD APP_PASSWORD; do
    printf '%s=%s\n' "$name" "$(head -c 60 /dev/urandom | base64 | tr -d '\n/+=')"
done > "$file.new"
mv "$file.new" "$file"
