#!/usr/bin/env bash
# Fuzzes the API from its own OpenAPI document with schemathesis (from PyPI, in a virtual environment of its own): no server
# error, no answer that the document does not describe. Needs python3 with venv. A number as argument is the count of
# examples per operation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

examples=${1:-20}
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT

cargo build -q -p segno-cli
segno=${CARGO_TARGET_DIR:-target}/debug/segno
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q schemathesis==4.32.5

store=segno:$work/store
key=$("$segno" keys create --name fuzz --role admin --grant '*/*' --store "$store" -o json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["secret"])')
"$segno" serve --store "$store" --listen 127.0.0.1:0 2>"$work/log" &
server=$!
until address=$(grep -o '"address":"[^"]*"' "$work/log" | cut -d'"' -f4) && [ -n "$address" ]; do
  kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
  read -rt 0.1 <> <(:) || true
done

# Streams do not end by themselves; fetches, exchanges and receivers wait for work. Revoking keys would take the fuzzer's own.
"$work/venv/bin/schemathesis" run "http://$address/openapi.json" \
  --header "Authorization: Bearer $key" \
  --checks all --exclude-checks positive_data_acceptance \
  --exclude-path-regex '(/events|/v1/work/fetch|/v1/work/exchange|/receive|/v1/keys/\{id\})$' \
  --max-examples "$examples" --request-timeout 90 --suppress-health-check all
