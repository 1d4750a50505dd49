#!/usr/bin/env bash
# The whole gate: what CI runs is exactly this. Needs Rust with rustfmt and clippy. PostgreSQL, Python, Node, openssl and systemd are installed
# from Debian's packages if they are missing; the tests get a private PostgreSQL server, for the run only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

gate_started=$SECONDS
stages=()

stage() {
  local name=$1 started=$SECONDS
  shift
  echo "==> $name: $*"
  if ! "$@"; then
    echo "==> $name: FAILED after $((SECONDS - started)) s" >&2
    table >&2
    exit 1
  fi
  stages+=("$(printf '%-22s %6d s' "$name" $((SECONDS - started)))")
  echo "==> $name: ok in $((SECONDS - started)) s"
}

# How long each stage took.
table() {
  if [[ ${#stages[@]} -gt 0 ]]; then printf '    %s\n' "${stages[@]}"; fi
  printf '    %-22s %6d s\n' total $((SECONDS - gate_started))
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

docs() {
  RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --features "$otlp"
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
# Certificates of the tests of TLS are made with it.
provide openssl openssl
# Checks the unit file.
provide systemd-analyze systemd

# Everything is compiled once to be linted and once to be run. Features of dependencies must not differ between stages, or both are done
# again: each stage takes the whole workspace, and the feature `otlp` that the default build leaves out changes no crate but segno-cli
# (see its dev-dependencies). The feature `amqp` changes segno-runbook and what uses it.
otlp=segno-cli/otlp
amqp=segno-runbook/amqp-tests,segno-cli/amqp

stage format cargo fmt --all --check
stage lints cargo clippy --workspace --all-targets -- -D warnings
stage "lints of features" cargo clippy --workspace --all-targets --features "$otlp,$amqp" -- -D warnings
if ! cargo nextest --version >/dev/null 2>&1; then
  stage "test runner" install_runner
fi
stage build cargo nextest run --workspace --no-run
# The house rules (dependency edges, error pages, file lengths) are tests too: examples/tests/house.rs.
stage tests scripts/with-postgres.sh cargo nextest run --workspace
# The same tests of the server again, on the stores that people run it on.
for store in embedded postgres; do
  SEGNO_TEST_STORE=$store stage "server on $store" \
    scripts/with-postgres.sh cargo nextest run --workspace -E 'package(segno-server) and kind(test)'
done
stage otlp cargo nextest run --workspace --features "$otlp" --test cli otlp
# A broker in process, and RabbitMQ.
stage amqp scripts/with-rabbitmq.sh cargo nextest run --workspace --features segno-runbook/amqp-tests --test amqp
stage doctests cargo test --workspace --doc
stage documentation docs

echo "==> all stages passed"
table
