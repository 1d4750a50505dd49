#!/usr/bin/env bash
# Runs the ledger on object stores with the interfaces of the clouds: moto's server for S3 (from PyPI) and Azurite for Azure Blob
# Storage (from npm), each in a private directory and on a private port, for this command only:
#   scripts/clouds.sh [s3|azure]
# On each: what the ledger needs of a store (put if absent, listings, ranges, writers that race), the log, manifests, folds,
# merges and copies; then whole DAG runs with SQL by the binary, with wrong credentials, a missing bucket, and a store that goes
# away in the middle. Needs python3 with venv, and node with npm. There is no such server for Google Cloud Storage outside of its
# binary releases, so the feature `gcs` is compiled and not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

moto=5.2.5
azurite=3.35.0

directory=$(mktemp -d /tmp/segno-clouds.XXXXXX)
server=
stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
  fi
}
finish() {
  stop
  rm -rf "$directory"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A port that is free now.
port() {
  python3 -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])'
}

# Waits until a server accepts connections.
await() {
  local name=$1 at=$2
  for _ in $(seq 1 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$at") 2>/dev/null; then
      return
    fi
    if ! kill -0 "$server" 2>/dev/null; then
      break
    fi
    read -rt 0.2 <> <(:) || true
  done
  cat "$directory/$name.log" >&2
  echo "clouds.sh: $name did not start" >&2
  exit 1
}

# The tests, built once with the clients of all clouds. The variables that they need are set by the caller.
run() {
  local name=$1 started=$SECONDS
  echo "==> $name"
  cargo nextest run --features segno-cli/s3,segno-cli/azure,segno-cli/gcs -p segno-ledger -p segno-cli --run-ignored all --no-fail-fast \
    -E '(package(segno-ledger) and test(/^(objects|log|manifest|compactor|transfer)::/)) or (package(segno-cli) and test(/^clouds::/))'
  echo "==> $name: ok in $((SECONDS - started)) s"
}

s3() {
  local at
  at=$(port)
  python3 -m venv "$directory/venv"
  "$directory/venv/bin/pip" install -q --no-compile "moto[s3]==$moto" flask flask-cors
  "$directory/venv/bin/python" scripts/s3_server.py "$at" >"$directory/moto.log" 2>&1 &
  server=$!
  await moto "$at"
  # The first requests need no credentials: they make the user whose signature all others need.
  AWS_ENDPOINT_URL=http://127.0.0.1:$at "$directory/venv/bin/python" scripts/s3_server.py --prepare segno-ledger >"$directory/keys"
  local id secret
  read -r id secret <"$directory/keys"
  AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$secret AWS_REGION=us-east-1 AWS_ENDPOINT_URL=http://127.0.0.1:$at AWS_ALLOW_HTTP=true \
    SEGNO_TEST_BUCKET=s3://segno-ledger SEGNO_TEST_BUCKET_ENDPOINT=AWS_ENDPOINT_URL SEGNO_TEST_BUCKET_SECRET=AWS_SECRET_ACCESS_KEY \
    run s3
  stop
}

azure() {
  local at account key
  at=$(port)
  account=segno
  key=$(python3 -c 'import base64, os; print(base64.b64encode(os.urandom(64)).decode())')
  npm install --silent --no-audit --no-fund --prefix "$directory/npm" "azurite@$azurite" >&2
  AZURITE_ACCOUNTS=$account:$key "$directory/npm/node_modules/.bin/azurite-blob" --silent --disableTelemetry --skipApiVersionCheck \
    --inMemoryPersistence --blobHost 127.0.0.1 --blobPort "$at" >"$directory/azurite.log" 2>&1 &
  server=$!
  await azurite "$at"
  SEGNO_AZURE_KEY=$key python3 scripts/azure_container.py "http://127.0.0.1:$at/$account" segno-ledger
  AZURE_STORAGE_ACCOUNT_NAME=$account AZURE_STORAGE_ACCOUNT_KEY=$key AZURE_STORAGE_ENDPOINT=http://127.0.0.1:$at/$account AZURE_ALLOW_HTTP=true \
    SEGNO_TEST_BUCKET=az://segno-ledger SEGNO_TEST_BUCKET_ENDPOINT=AZURE_STORAGE_ENDPOINT SEGNO_TEST_BUCKET_SECRET=AZURE_STORAGE_ACCOUNT_KEY \
    run azure
  stop
}

case ${1:-all} in
  s3) s3 ;;
  azure) azure ;;
  all) s3 && azure ;;
  *) echo "use: clouds.sh [s3|azure]" >&2; exit 2 ;;
esac
