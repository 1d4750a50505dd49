#!/usr/bin/env bash
# Stands in for rustdoc while Cargo runs doctests (RUSTDOC=scripts/rustdoc.sh cargo test --doc): makes the pages of the crate first, with
# warnings as errors, from what is compiled for its doctests. A run of `cargo doc` would compile every dependency once more.
set -euo pipefail

pages=()
skip_value=
for argument in "$@"; do
  if [[ -n $skip_value ]]; then
    skip_value=
    continue
  fi
  case $argument in
    --test) ;;
    --test-run-directory | --test-args) skip_value=1 ;;
    *) pages+=("$argument") ;;
  esac
done
if [[ ${#pages[@]} -lt $# ]]; then
  rustdoc "${pages[@]}" --deny warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
