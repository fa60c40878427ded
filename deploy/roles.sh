#!/bin/sh
# Creates the two roles and the database, as a superuser: the owner migrates, the application can't change the audit.
# PGHOST, PGUSER and the like say where; OWNER_PASSWORD and APP_PASSWORD are the roles' passwords.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres --set owner="$OWNER_PASSWORD" --set app="$APP_PASSWORD" <<'SQL'
CREATE ROLE schemadesk_owner LOGIN PASSWORD :'owner';
CREATE ROLE schemadesk_app LOGIN PASSWORD :'app';
CREATE DATABASE schemadesk OWNER schemadesk_owner;
SQL
