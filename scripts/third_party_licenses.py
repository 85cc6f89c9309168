"""Write the licences and the bill of materials of the wheel: `make licenses`; `--check` compares.

Both list the crates in the compiled module. If a crate offers the MIT licence among others, its MIT
text is used. The bill of materials is in the CycloneDX format. maturin's own would contain a random
number, the time and the build directory, so that no two wheels would be equal.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LICENSES = ROOT / "LICENSE-THIRD-PARTY"
MATERIALS = ROOT / "rust" / "python" / "geomdp.cdx.json"
SHIPPED = "geomdp-python"
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
HEADING = """The compiled part of geomdp holds code of the crates below, and of Rust's standard
library, which is under the MIT licence or the Apache licence, version 2.0, as this package is.
"""


def crates() -> dict[str, dict[str, Any]]:
    """Return the crates that are compiled in on any platform, by name and version."""
    found = {}
    for platform in PLATFORMS:
        command = ["cargo", "metadata", "--locked", "--format-version=1"]
        metadata = json.loads(
            subprocess.run(
                [*command, "--filter-platform", platform], cwd=ROOT, check=True, capture_output=True
            ).stdout
        )
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        waiting = [key for key, package in packages.items() if package["name"] == SHIPPED]
        seen = set(waiting)
        while waiting:
            key = waiting.pop()
            package = packages[key]
            if package["source"]:
                found[f"{package['name']} {package['version']}"] = package
            for needed in nodes[key]["deps"]:
                # Exclude build and test dependencies.
                normal = any(kind["kind"] is None for kind in needed["dep_kinds"])
                # Exclude procedural macros, which run in the compiler.
                targets = packages[needed["pkg"]]["targets"]
                macro = any("proc-macro" in target["kind"] for target in targets)
                if normal and not macro and needed["pkg"] not in seen:
                    seen.add(needed["pkg"])
                    waiting.append(needed["pkg"])
    return dict(sorted(found.items()))


def text(package: dict[str, Any]) -> str:
    """Return the text of the licence used for a crate."""
    files = sorted(Path(package["manifest_path"]).parent.glob("LICEN[SC]E*"))
    mine = [file for file in files if "MIT" in file.name] if "MIT" in package["license"] else []
    chosen = mine or files
    if not chosen:
        raise SystemExit(f"{package['name']} has no licence file: {package['license']}")
    return "\n\n".join(file.read_text().strip() for file in chosen)


def licenses(found: dict[str, dict[str, Any]]) -> str:
    groups: dict[str, list[str]] = {}
    for name, package in found.items():
        groups.setdefault(text(package), []).append(f"{name} ({package['license']})")
    rule = "=" * 80
    parts = [f"{rule}\n{chr(10).join(names)}\n{rule}\n\n{text}\n" for text, names in groups.items()]
    return "\n".join([HEADING, *parts])


def materials(found: dict[str, dict[str, Any]]) -> str:
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(crate["name"], crate["version"]): crate.get("checksum") for crate in locked}
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    components = [
        {
            "type": "library",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:cargo/{package['name']}@{package['version']}",
            "licenses": [{"expression": package["license"]}],
            "hashes": [{"alg": "SHA-256", "content": hashes[package["name"], package["version"]]}],
        }
        for package in found.values()
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "geomdp", "version": version}},
        "components": components,
    }
    return json.dumps(document, indent=1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a file differs")
    check = parser.parse_args().check
    found = crates()
    for file, content in ((LICENSES, licenses(found)), (MATERIALS, materials(found))):
        if not check:
            file.write_text(content)
        elif not file.exists() or file.read_text() != content:
            print(f"{file.name} does not match Cargo.lock: run `make licenses`", file=sys.stderr)
            return 1
    print(f"{len(found)} crates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
