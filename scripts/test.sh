#!/usr/bin/env bash
# The whole gate: what CI runs is exactly this. Needs Rust with rustfmt and clippy. PostgreSQL, Python, Node, Chromium, jq, openssl and systemd are installed
# from Debian's packages if they are missing; the tests get private servers of PostgreSQL and RabbitMQ, for the run only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

gate_started=$SECONDS
stages=()

# Processor time of all commands so far, in seconds, into `processor`. A subshell would report its own.
read_processor() {
  local times_file
  times_file=$(mktemp)
  times >"$times_file"
  processor=$(awk 'NR == 2 { gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$times_file")
  rm "$times_file"
}

stage() {
  local name=$1 started=$SECONDS processor before
  shift
  read_processor
  before=$processor
  echo "==> $name: $*"
  if ! "$@"; then
    echo "==> $name: FAILED after $((SECONDS - started)) s" >&2
    table >&2
    exit 1
  fi
  read_processor
  stages+=("$(printf '%-22s %7d s %7d s' "$name" $((SECONDS - started)) $((processor - before)))")
  echo "==> $name: ok in $((SECONDS - started)) s"
}

# How long each stage took, and how much processor time.
table() {
  local processor
  read_processor
  printf '    %-22s %9s %9s\n' stage elapsed processor
  if [[ ${#stages[@]} -gt 0 ]]; then printf '    %s\n' "${stages[@]}"; fi
  printf '    %-22s %7d s %7d s\n' total $((SECONDS - gate_started)) "$processor"
}

require() {
  local tool=$1 advice=$2
  shift 2
  if ! "$@" >/dev/null 2>&1; then
    echo "$tool is missing: $advice" >&2
    exit 1
  fi
}

# Installs a Debian package if its command is missing.
provide() {
  local tool=$1 package=$2
  if command -v "$tool" >/dev/null; then
    return
  fi
  if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
    echo "$tool is missing: install it, or run this as root where there is apt-get (package $package)" >&2
    exit 1
  fi
  stage "package $package" install_package "$package"
}

install_package() {
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$1"
}

# Without what a test runner of this script does not use, and without optimisation: it starts processes and waits for them.
install_runner() {
  CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug --no-default-features --features default-no-update cargo-nextest
}

require cargo "install Rust from https://rustup.rs" cargo --version
require rustfmt "run 'rustup component add rustfmt'" cargo fmt --version
require clippy "run 'rustup component add clippy'" cargo clippy --version

# The example workers in these languages are run by tests.
provide python3 python3
provide node nodejs
# Commands of the guide read JSON with it.
provide jq jq
# Certificates of the tests of TLS are made with it.
provide openssl openssl
# Checks the unit file.
provide systemd-analyze systemd

# Everything is compiled once: clippy's driver is a compiler that also lints, so what it compiles is what the tests run. Warnings are errors.
RUSTC_WORKSPACE_WRAPPER=$(command -v clippy-driver || rustup which clippy-driver)
export RUSTC_WORKSPACE_WRAPPER
export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# A cold build has no use for incremental compilation, which costs time and gigabytes. Line tables of backtraces cost a tenth of the
# compiler's time, and more units than processors another fifteenth; panics name their line without them.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-none}
export CARGO_PROFILE_DEV_CODEGEN_UNITS=${CARGO_PROFILE_DEV_CODEGEN_UNITS:-4}
# rustdoc makes the pages of a crate before it runs its doctests, from what is compiled for them.
RUSTDOC=$PWD/scripts/rustdoc.sh
export RUSTDOC

# Features that the default build leaves out. Features of dependencies must not differ between stages, or they are compiled again: each
# stage takes the whole workspace, and these change no crate but segno-cli (see its dev-dependencies).
features=segno-cli/otlp,segno-cli/amqp

stage format cargo fmt --all --check
if ! cargo nextest --version >/dev/null 2>&1; then
  stage "test runner" install_runner
fi
stage "build and lints" cargo nextest run --workspace --no-run
# The house rules (dependency edges, error pages, file lengths) are tests too: examples/tests/house.rs.
stage tests scripts/with-rabbitmq.sh scripts/with-postgres.sh cargo nextest run --workspace
# The committed files of the web UI are what its sources give, and people's errands on its pages succeed in a browser.
stage "web UI" scripts/web.sh check
# The same tests of the server again, on the other store that people run it on, but for those whose answers come before the store, from
# faults in front of it, or from damaged files.
same_on_every_store='test(/^(connections|cut_off|damage|doors|refusals|requests|schema_fairness|ui)::/)'
SEGNO_TEST_STORE=postgres stage "server on postgres" \
  scripts/with-postgres.sh cargo nextest run --workspace -E "package(segno-server) and kind(test) and not $same_on_every_store"
# The command line with what the default build leaves out.
stage "build with features" cargo nextest run --workspace --features "$features" --test cli --no-run
stage features cargo nextest run --workspace --features "$features" --test cli -E 'test(otlp)'
stage "documentation, doctests" cargo test --workspace --doc

echo "==> all stages passed"
table
