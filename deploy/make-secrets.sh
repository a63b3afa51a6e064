#!/bin/sh
# Make the secrets that deploy/compose.yaml and docs/running.md name and that are random; what exists is kept.
# CONTROL and TENANTS: addresses of the two PostgreSQL servers, where they are not compose's.
# Containers read the files as another user: the folder keeps others out, the files do not.
set -eu
folder="${1:-$(dirname "$0")/secrets}"
mkdir -p "$folder"
chmod 0700 "$folder"
cd "$folder"

make() { # name, text
  test -e "$1" || { printf '%s' "$2" >".$1.new" && chmod 0444 ".$1.new" && mv ".$1.new" "$1"; }
}
# 32 random bytes as base64 for URLs, which is a Fernet key as well.
key() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n'; }
password() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# Django asks for 50 characters.
make secret_key "$(head -c 48 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n')"
for name in secret_keys jwt_secret jwt_refresh_secret mfa_secret brain_secret; do
  make "$name" "$(key)"
done
for name in control tenants; do
  make "${name}_password" "$(password)"
done
make database_url "postgres://zonal:$(cat control_password)@${CONTROL:-control:5432}/zonal"
make sql_cluster_url "postgres://zonal:$(cat tenants_password)@${TENANTS:-tenants:5432}/zonal"

# compose's settings, of which an operator may have none.
test "$#" -gt 0 || for name in platform brain; do
  test -e "../$name.env" || (umask 077 && : >"../$name.env")
done

for name in mail_url brain_cert brain_key; do
  test -e "$name" || echo "$folder/$name is yours to write: see docs/running.md, for compose docs/production.md."
done
