#!/usr/bin/env bash
# A private PostgreSQL server in a directory of its own, for tests and measurements. It listens on a socket in that
# directory and on nothing else, so it meets no other server.
#
#   postgres.sh start DIR [SETTING=VALUE…]   makes the cluster if DIR is empty, starts it, prints its URL
#   postgres.sh stop DIR                     stops it as an operator would
#   postgres.sh crash DIR                    stops it at once, without a checkpoint, as a crash would
#
# Installs PostgreSQL from Debian's packages when it is missing. PostgreSQL refuses to run as root, so root runs it
# as the user postgres or nobody.
set -euo pipefail

fail() {
  echo "postgres.sh: $*" >&2
  exit 1
}

# The newest server on this machine, whether or not it is on the path: Debian keeps it off.
find_binaries() {
  local newest
  newest=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  for directory in "$newest" /usr/local/pgsql/bin "$(dirname "$(command -v initdb || echo /none/initdb)")"; do
    if [[ -n $directory && -x $directory/initdb && -x $directory/pg_ctl ]]; then
      echo "$directory"
      return
    fi
  done
}

install_server() {
  command -v apt-get >/dev/null || fail "PostgreSQL is not installed and there is no apt-get: install PostgreSQL 14 or newer"
  [[ $(id -u) == 0 ]] || fail "PostgreSQL is not installed: run 'apt-get install postgresql' as root"
  echo "postgres.sh: installing PostgreSQL from Debian's packages" >&2
  {
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
      -o Dpkg::Options::=--force-confold postgresql
  } >&2 || fail "apt-get could not install PostgreSQL: install PostgreSQL 14 or newer by hand"
}

# Runs a command as whom the server runs.
as_owner() {
  if [[ $(id -u) != 0 ]]; then
    "$@"
  else
    setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups env HOME=/tmp "$@"
  fi
}

[[ $# -ge 2 ]] || fail "use: postgres.sh start|stop|crash DIR [SETTING=VALUE…]"
verb=$1 directory=$2
shift 2
binaries=$(find_binaries)
if [[ -z $binaries ]]; then
  install_server
  binaries=$(find_binaries)
  [[ -n $binaries ]] || fail "PostgreSQL was installed but initdb is nowhere: install PostgreSQL 14 or newer by hand"
fi
if id postgres >/dev/null 2>&1; then owner=postgres; else owner=nobody; fi

case $verb in
  start)
    mkdir -p "$directory"
    if [[ $(id -u) == 0 ]]; then chown "$owner" "$directory"; fi
    if [[ ! -f $directory/data/PG_VERSION ]]; then
      as_owner "$binaries/initdb" --pgdata="$directory/data" --username=segno --auth=trust --encoding=UTF8 \
        --locale=C --no-sync >/dev/null || fail "initdb failed in $directory"
    fi
    options="-c listen_addresses= -c unix_socket_directories=$directory"
    for setting in "$@"; do options+=" -c $setting"; done
    # The server must not keep our output open, or whoever reads it waits for the server to end.
    if ! as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --log="$directory/log" \
      --options="$options" start </dev/null >/dev/null 2>&1; then
      tail -n 20 "$directory/log" >&2 || true
      fail "the server did not start; its log is in $directory/log"
    fi
    echo "postgres://segno@${directory//\//%2F}/postgres"
    ;;
  stop) as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --mode=fast stop ;;
  crash) as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --mode=immediate stop ;;
  *) fail "unknown verb '$verb': use start, stop or crash" ;;
esac
