#!/usr/bin/env bash
# Runs a command with a private RabbitMQ server, for this command only, and stops the server in every case:
#   scripts/with-rabbitmq.sh cargo nextest run --workspace --test amqp
# The command finds the URL of the server for Segno's `bus.url` in SEGNO_TEST_RABBITMQ. It has the topics and subscriptions of
# runbooks as exchanges and queues, with dead letters. Installs RabbitMQ from Debian's packages when it is missing.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "use: with-rabbitmq.sh COMMAND…" >&2; exit 2; }

binaries=/usr/lib/rabbitmq/bin
if [[ ! -x $binaries/rabbitmq-server ]]; then
  if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
    echo "with-rabbitmq.sh: RabbitMQ is missing: run 'apt-get install rabbitmq-server' as root" >&2
    exit 1
  fi
  # Debian starts services when they are installed; nobody asked for that here.
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qy --no-install-recommends rabbitmq-server; } >&2
fi

# Ports that are free now.
read -r port distribution epmd < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])')

directory=$(mktemp -d /tmp/segno-rabbitmq.XXXXXX)
environment=(
  HOME="$directory" ERL_EPMD_PORT="$epmd" ERL_EPMD_ADDRESS=127.0.0.1
  RABBITMQ_NODENAME="segno-$port@localhost" RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port" RABBITMQ_DIST_PORT="$distribution"
  RABBITMQ_MNESIA_BASE="$directory/data" RABBITMQ_LOG_BASE="$directory/log" RABBITMQ_ENABLED_PLUGINS_FILE="$directory/plugins"
  RABBITMQ_CONFIG_FILE="$directory/rabbitmq.conf" RABBITMQ_CONF_ENV_FILE="$directory/environment"
)
server=
stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  epmd -port "$epmd" -kill >/dev/null 2>&1 || true
  rm -rf "$directory"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

touch "$directory/environment"
echo '[rabbitmq_amqp1_0].' >"$directory/plugins"
cat >"$directory/rabbitmq.conf" <<CONF
load_definitions = $directory/definitions.json
CONF
cat >"$directory/definitions.json" <<'JSON'
{
  "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
  "vhosts": [{"name": "/"}],
  "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
  "exchanges": [
    {"name": "orchestrator-events", "vhost": "/", "type": "fanout", "durable": true, "auto_delete": false, "arguments": {}},
    {"name": "worker-jobs", "vhost": "/", "type": "fanout", "durable": true, "auto_delete": false, "arguments": {}},
    {"name": "worker-results", "vhost": "/", "type": "fanout", "durable": true, "auto_delete": false, "arguments": {}},
    {"name": "dead", "vhost": "/", "type": "fanout", "durable": true, "auto_delete": false, "arguments": {}}
  ],
  "queues": [
    {"name": "orchestrator-events.segno", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-dead-letter-exchange": "dead"}},
    {"name": "worker-jobs.cloud-01", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-dead-letter-exchange": "dead"}},
    {"name": "worker-results.segno", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-dead-letter-exchange": "dead"}},
    {"name": "dead.letters", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {}}
  ],
  "bindings": [
    {"source": "orchestrator-events", "vhost": "/", "destination": "orchestrator-events.segno", "destination_type": "queue", "routing_key": "", "arguments": {}},
    {"source": "worker-jobs", "vhost": "/", "destination": "worker-jobs.cloud-01", "destination_type": "queue", "routing_key": "", "arguments": {}},
    {"source": "worker-results", "vhost": "/", "destination": "worker-results.segno", "destination_type": "queue", "routing_key": "", "arguments": {}},
    {"source": "dead", "vhost": "/", "destination": "dead.letters", "destination_type": "queue", "routing_key": "", "arguments": {}}
  ]
}
JSON

env "${environment[@]}" "$binaries/rabbitmq-server" >"$directory/said" 2>&1 &
server=$!
for _ in $(seq 1 120); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    break
  fi
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$directory/said" >&2
    echo "with-rabbitmq.sh: RabbitMQ did not start" >&2
    exit 1
  fi
  sleep 1
done

SEGNO_TEST_RABBITMQ="amqp://guest:guest@127.0.0.1:$port/?broker=rabbitmq3" "$@"
