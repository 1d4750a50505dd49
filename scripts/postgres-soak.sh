#!/usr/bin/env bash
# Runs `hello` on a private, durable PostgreSQL server with autovacuum at its defaults, and prints the sizes of all tables and
# indexes after a tenth of the runs and after all of them: what is updated in place must not grow.
#   scripts/postgres-soak.sh [RUNS]          2,000,000 unless stated otherwise
# The program is $SEGNO_BENCH, or target/release/segno-bench.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
runs=${1:-2000000}
bench=${SEGNO_BENCH:-$scripts/../target/release/segno-bench}
[[ $runs =~ ^[0-9]+$ && $runs -ge 10 ]] || { echo "postgres-soak.sh: RUNS is a number from 10" >&2; exit 2; }
[[ -x $bench ]] || { echo "postgres-soak.sh: $bench is not there: run cargo build --release -p segno-bench" >&2; exit 2; }

# The command that the private server is started for is this script again.
if [[ -z ${SEGNO_SOAK_SERVER:-} ]]; then
  SEGNO_SOAK_SERVER=1 SEGNO_TEST_POSTGRES_DURABLE=1 exec "$scripts/with-postgres.sh" "${BASH_SOURCE[0]}" "$runs"
fi

socket=${SEGNO_TEST_POSTGRES#*@}
socket=${socket%/postgres}
psql=$(command -v psql || ls -d /usr/lib/postgresql/*/bin/psql | sort -V | tail -n 1)
query() { "$psql" --no-psqlrc --quiet --tuples-only --no-align --host="${socket//\%2F//}" --username=segno --dbname=postgres --command="$1"; }

# Runs until this many instances are stored.
run_until() {
  while [[ $(query "SELECT coalesce(sum(n), 0) FROM segno.writer, unnest(instances) AS n" 2>/dev/null || echo 0) -lt $1 ]]; do
    "$bench" run hello --store "$SEGNO_TEST_POSTGRES" --concurrency 256 --seconds 10 --json
  done
}

sizes() {
  query "SELECT count(*) || ' instances' FROM segno.instance"
  query "SELECT rpad(c.relname, 24) || lpad(pg_relation_size(c.oid) / 1024 || ' kB', 14)
                || CASE WHEN c.relkind = 'r' THEN
                     format('   updates %s (%s HOT), dead rows %s, autovacuums %s', s.n_tup_upd, s.n_tup_hot_upd, s.n_dead_tup,
                            s.autovacuum_count) ELSE '' END
           FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
          WHERE c.relnamespace = 'segno'::regnamespace AND c.relkind IN ('r', 'i') AND pg_relation_size(c.oid) > 8192
          ORDER BY c.relname"
}

run_until $((runs / 10))
sizes
run_until "$runs"
sizes
