#!/bin/sh
# manage.py of /opt/zonal with the settings of the systemd units, as their user: docs/running.md installs
# it as zonal-manage. In the folder of a release it runs that one: so it migrates before it is used. /etc/zonal/platform.env has one NAME=value a line, without quotes.
set -eu
while IFS= read -r line || [ -n "$line" ]; do
  case "$line" in
    [A-Za-z]*=*) export "$line" ;;
  esac
done </etc/zonal/platform.env
# HOME: libpq looks for certificates there, and root's is closed to the user.
export PRODUCTION=true ZDATA_DIR=/var/lib/zonal HOME=/var/lib/zonal
umask 0077
folder=$(dirname "$0")/..
[ -f "$folder/manage.py" ] || folder=/opt/zonal
cd "$folder"
exec runuser -u zonal -- .venv/bin/python manage.py "$@"
