#!/usr/bin/env bash
# Makes a release for this machine's platform in a directory: the binary with OTLP in an archive, its completions, the service file,
# the list of everything that is in it (an SBOM in CycloneDX), and checksums.
#   scripts/release.sh DIR [--binary FILE]
# With --binary nothing is built: FILE is packed, which is how the test of this script runs it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
  echo "release.sh: $*" >&2
  exit 1
}

[[ $# == 1 || ($# == 3 && $2 == --binary) ]] || fail "use: release.sh DIR [--binary FILE]"
mkdir -p "$1"
directory=$(cd "$1" && pwd)
binary=${3:-}

cd "$root"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
platform=$(rustc -vV | sed -n 's/^host: //p')
name=segno-$version-$platform
if [[ -z $binary ]]; then
  # For `segno version`; a source archive without git gives none.
  SEGNO_COMMIT=${SEGNO_COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)} \
    cargo build --locked --release --package segno-cli --features otlp
  binary=${CARGO_TARGET_DIR:-target}/release/segno
fi
[[ -x $binary ]] || fail "$binary is no program"

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
mkdir -p "$staging/$name/completions"
install -m 0755 "$binary" "$staging/$name/segno"
install -m 0644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT packaging/segno.service "$staging/$name"
for shell in bash fish zsh; do
  "$binary" completions "$shell" >"$staging/$name/completions/segno.$shell"
done
scripts/sbom.py "$version" "$platform" >"$staging/$name/segno.cdx.json"

# The same input gives the same archive: names in order, no times, no owners.
tar --create --directory="$staging" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner "$name" |
  gzip --no-name --best >"$directory/$name.tar.gz"
install -m 0644 "$staging/$name/segno.cdx.json" "$directory/$name.cdx.json"
cd "$directory"
sha256sum "$name.tar.gz" "$name.cdx.json" >"$name.sha256"
echo "$directory/$name.tar.gz"
