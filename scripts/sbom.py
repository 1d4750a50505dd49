#!/usr/bin/env python3
"""What is in the binary `segno` of a release: every crate that it is linked from, with version, licence and checksum, as CycloneDX 1.5.

    scripts/sbom.py VERSION PLATFORM

Reads `cargo metadata` and Cargo.lock; nothing is built and nothing is fetched that a build would not fetch.
"""

import json
import subprocess
import sys
import tomllib


def main(version: str, platform: str) -> None:
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={platform}"]
    metadata = json.loads(subprocess.check_output([*command, "--features=segno-cli/otlp"]))
    with open("Cargo.lock", "rb") as file:
        locked = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(file)["package"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "segno-cli")
    linked, waiting = set(), [root]
    while waiting:
        id = waiting.pop()
        if id in linked:
            continue
        linked.add(id)
        for dependency in nodes[id]["deps"]:
            # Normal dependencies have the kind null: what is used to build or to test is not in the binary.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    components = [component(packages[id], locked) for id in linked - {root}]
    components.sort(key=lambda component: component["bom-ref"])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:cargo/segno-cli@{version}",
                "name": "segno",
                "version": version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "properties": [{"name": "segno:platform", "value": platform}],
            }
        },
        "components": components,
    }
    json.dump(document, sys.stdout, indent=2)
    print()


def component(package: dict, locked: dict) -> dict:
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": url, "purl": url, "name": name, "version": version}
    if package["license"]:
        # An old form of "or" that some manifests still have.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := locked.get((name, version)):
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("use: sbom.py VERSION PLATFORM")
    main(*sys.argv[1:])
