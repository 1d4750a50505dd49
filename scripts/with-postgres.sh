#!/usr/bin/env bash
# Runs a command with a private PostgreSQL server, for this command only, and stops the server in every case:
#   scripts/with-postgres.sh cargo nextest run -p segno-postgres
# The command finds the server's URL in SEGNO_TEST_POSTGRES. A server that runs elsewhere is not touched. The server does not
# sync, which makes tests fast; SEGNO_TEST_POSTGRES_DURABLE=1 leaves its durable defaults, for measurements.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

[[ $# -ge 1 ]] || { echo "use: with-postgres.sh COMMAND…" >&2; exit 2; }

directory=$(mktemp -d /tmp/segno-postgres.XXXXXX)
stop() {
  "$scripts/postgres.sh" stop "$directory" >/dev/null 2>&1 || true
  rm -rf "$directory"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

settings=(max_connections=300)
if [[ ${SEGNO_TEST_POSTGRES_DURABLE:-0} != 1 ]]; then
  settings+=(fsync=off synchronous_commit=off full_page_writes=off)
fi
SEGNO_TEST_POSTGRES=$("$scripts/postgres.sh" start "$directory" "${settings[@]}")
export SEGNO_TEST_POSTGRES
"$@"
