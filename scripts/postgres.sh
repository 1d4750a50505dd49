#!/usr/bin/env bash
# A private PostgreSQL server in a directory of its own, for tests and measurements. It listens on a socket in that
# directory and on nothing else, so it meets no other server.
#
#   postgres.sh start DIR [SETTING=VALUE…]   makes the cluster if DIR is empty, starts it, prints its URL
#   postgres.sh certify DIR                  makes an authority (authority.crt) and a certificate of it for localhost
#                                            (server.crt, server.key), to be used by `start`
#   postgres.sh pool DIR                     starts a PgBouncer in transaction mode before the server, prints its URL
#   postgres.sh standby DIR PRIMARY          makes DIR a synchronous standby of the server in PRIMARY, starts it, prints its
#                                            URL once it is in step; what was in DIR before goes
#   postgres.sh promote DIR                  makes a standby the primary
#   postgres.sh stop DIR                     stops both as an operator would
#   postgres.sh crash DIR                    stops the server at once, without a checkpoint, as a crash would
#
# Installs PostgreSQL and PgBouncer from Debian's packages when they are missing. PostgreSQL refuses to run as root, so root runs it
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

# Installs a package, one process at a time: tests that need it start side by side.
install_package() {
  local package=$1 advice=$2
  command -v apt-get >/dev/null || fail "$package is not installed and there is no apt-get: $advice"
  [[ $(id -u) == 0 ]] || fail "$package is not installed: run 'apt-get install $package' as root"
  echo "postgres.sh: installing $package from Debian's packages" >&2
  # Debian starts services when they are installed; nobody asked for that here.
  {
    apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qy --no-install-recommends \
      -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$package"
  } >&2 || fail "apt-get could not install $package: $advice"
}

# Runs a command as whom the server runs.
as_owner() {
  if [[ $(id -u) != 0 ]]; then
    "$@"
  else
    setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups env HOME=/tmp "$@"
  fi
}

# A directory that belongs to whom the server runs as.
make_directory() {
  mkdir -p "$1"
  if [[ $(id -u) == 0 ]]; then chown "$owner" "$1"; fi
}

certify() {
  local authority="$directory/authority" server="$directory/server"
  local new=(openssl req -new -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1)
  as_owner "${new[@]}" -x509 -days 2 -subj "/CN=Segno tests" -keyout "$authority.key" -out "$authority.crt" \
    -addext basicConstraints=critical,CA:TRUE
  as_owner "${new[@]}" -subj "/CN=localhost" -addext subjectAltName=DNS:localhost -keyout "$server.key" -out "$server.csr"
  as_owner openssl x509 -req -days 2 -in "$server.csr" -CA "$authority.crt" -CAkey "$authority.key" -CAcreateserial \
    -copy_extensions copyall -out "$server.crt"
  as_owner chmod 600 "$server.key"
}

pool() {
  if ! command -v pgbouncer >/dev/null; then install_package pgbouncer "install PgBouncer by hand"; fi
  make_directory "$directory/pool"
  printf '%s\n' '"segno" ""' >"$directory/pool/users"
  cat >"$directory/pool/settings" <<SETTINGS
[databases]
* = host=$directory
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = $directory/pool
auth_type = trust
auth_file = $directory/pool/users
pool_mode = transaction
default_pool_size = 4
logfile = $directory/pool/log
pidfile = $directory/pool/pid
SETTINGS
  as_owner "$(command -v pgbouncer || echo /usr/sbin/pgbouncer)" --quiet --daemon "$directory/pool/settings" </dev/null >&2
  local socket="$directory/pool"
  # It goes into the background before it listens.
  for _ in {1..100}; do
    if [[ -S $socket/.s.PGSQL.6432 ]]; then break; fi
    sleep 0.1
  done
  [[ -S $socket/.s.PGSQL.6432 ]] || fail "PgBouncer did not start; its log is in $socket/log"
  echo "postgres://segno@${socket//\//%2F}:6432/postgres?pooler=transaction"
}

stop_pool() {
  if [[ -f $directory/pool/pid ]]; then kill -INT "$(<"$directory/pool/pid")" 2>/dev/null || true; fi
}

start() {
  local options="-c listen_addresses= -c unix_socket_directories=$directory"
  for setting in "$@"; do options+=" -c $setting"; done
  # The server must not keep our output open, or the reader of it waits for the server to end.
  if ! as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --log="$directory/log" \
    --options="$options" start </dev/null >/dev/null 2>&1; then
    tail -n 20 "$directory/log" >&2 || true
    fail "the server did not start; its log is in $directory/log"
  fi
  echo "postgres://segno@${directory//\//%2F}/postgres"
}

query() {
  as_owner "$binaries/psql" --no-psqlrc --quiet --tuples-only --no-align --host="$1" --username=segno --dbname=postgres \
    --command="$2"
}

# A standby without a replication slot: if it falls far behind, it is made again.
standby() {
  local primary=$1
  make_directory "$directory"
  rm -rf "$directory/data"
  as_owner "$binaries/pg_basebackup" --pgdata="$directory/data" --host="$primary" --username=segno --checkpoint=fast \
    --wal-method=stream --write-recovery-conf --no-sync >&2 || fail "no copy of $primary could be made in $directory"
  # Once promoted it has no standby of its own, and must not wait for one.
  as_owner tee -a "$directory/data/postgresql.auto.conf" <<<"synchronous_standby_names = ''" >/dev/null
  start
  query "$primary" "ALTER SYSTEM SET synchronous_standby_names = '*'"
  query "$primary" "SELECT pg_reload_conf()" >/dev/null
  for _ in {1..300}; do
    if [[ $(query "$primary" "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1 ]]; then return; fi
    sleep 0.1
  done
  fail "$directory did not get in step with $primary; its log is in $directory/log"
}

[[ $# -ge 2 ]] || fail "use: postgres.sh start|certify|pool|standby|promote|stop|crash DIR [SETTING=VALUE…]"
verb=$1 directory=$2
shift 2
binaries=$(find_binaries)
if [[ -z $binaries ]]; then
  install_package postgresql "install PostgreSQL 14 or newer by hand"
  binaries=$(find_binaries)
  [[ -n $binaries ]] || fail "PostgreSQL was installed but initdb is nowhere: install PostgreSQL 14 or newer by hand"
fi
if id postgres >/dev/null 2>&1; then owner=postgres; else owner=nobody; fi

case $verb in
  start)
    make_directory "$directory"
    if [[ ! -f $directory/data/PG_VERSION ]]; then
      as_owner "$binaries/initdb" --pgdata="$directory/data" --username=segno --auth=trust --encoding=UTF8 \
        --locale=C --no-sync >/dev/null || fail "initdb failed in $directory"
    fi
    start "$@"
    ;;
  certify)
    make_directory "$directory"
    certify 2>"$directory/certify.log" || fail "openssl failed; what it said is in $directory/certify.log"
    ;;
  pool) pool ;;
  standby)
    [[ $# == 1 ]] || fail "use: postgres.sh standby DIR PRIMARY"
    standby "$1"
    ;;
  promote) as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent promote ;;
  stop)
    stop_pool
    as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --mode=fast stop
    ;;
  crash) as_owner "$binaries/pg_ctl" --pgdata="$directory/data" --wait --silent --mode=immediate stop ;;
  *) fail "unknown verb '$verb': use start, certify, pool, standby, promote, stop or crash" ;;
esac
