#!/bin/sh
# Creates the two roles and the database, as a superuser: the owner migrates, the application can't change the audit.
# Connections end within some eleven seconds once their host is gone, and with them the locks: idle ones
# by their keepalives, and those with an answer under way, for which no keepalive is sent, by tcp_user_timeout.
# PGHOST, PGUSER and the like say where; OWNER_PASSWORD and APP_PASSWORD are the roles' passwords.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres --set owner="$OWNER_PASSWORD" --set app="$APP_PASSWORD" <<'SQL'
CREATE ROLE schemadesk_owner LOGIN PASSWORD :'owner';
CREATE ROLE schemadesk_app LOGIN PASSWORD :'app';
CREATE DATABASE schemadesk OWNER schemadesk_owner;
ALTER DATABASE schemadesk SET tcp_keepalives_idle = 5;
ALTER DATABASE schemadesk SET tcp_keepalives_interval = 2;
ALTER DATABASE schemadesk SET tcp_keepalives_count = 3;
ALTER DATABASE schemadesk SET tcp_user_timeout = 10000;
SQL
