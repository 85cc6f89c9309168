"""Keep the figures of long checks beside the sources that they are of: `make evidence`.

`evidence/checks.toml` names each check with its command and the sources that it covers. A check
that runs under `record` leaves `evidence/CHECK.json`: the commit, a hash of these sources, and the
figures in its output. The pages show figures between marks, which this program renders. A record
whose sources have changed since gives no figure: the page of all checks then says that the check is
owed, and others that no run is on record.

    scripts/evidence.py [--write]                compare the pages with the records, or render them
    scripts/evidence.py record CHECK COMMAND     run a check; with RECORD=1, also record it
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: A part of a page that shows a check, CHECK.FIGURE alone, or `all` checks in a table.
MARKED = re.compile(r"(<!-- evidence: (\S+) -->).*?(<!-- end -->)", re.DOTALL)
HEAD = "| check | command | its last run |\n|---|---|---|"
OWED = "**owed**"
Table = dict[str, dict[str, Any]]


def checks() -> Table:
    """Return the checks, with the paths that each covers."""
    read = tomllib.loads((ROOT / "evidence/checks.toml").read_text())
    groups = read["groups"]
    for check in read["checks"].values():
        check["sources"] = [path for name in check["sources"] for path in groups.get(name, [name])]
    table: Table = read["checks"]
    return table


def git(*arguments: str) -> list[str]:
    run = ["git", *arguments]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def hash_of(sources: list[str]) -> str:
    """Return a hash of the names and contents of the files; every path must name one."""
    names: set[str] = set()
    for source in sources:
        found = git("ls-files", "--cached", "--others", "--exclude-standard", "--", source)
        if not any((ROOT / name).is_file() for name in found):
            sys.exit(f"evidence/checks.toml: {source} names no file")
        names.update(found)
    found_hash = sha256()
    for name in sorted(names):
        file = ROOT / name
        content = file.read_bytes() if file.is_file() else b""
        found_hash.update(f"{name}\0{len(content)}\0".encode() + content)
    return found_hash.hexdigest()


def figures_in(output: str, patterns: list[str]) -> dict[str, str]:
    """Return the named groups of all patterns; every pattern must match."""
    figures = {}
    for pattern in patterns:
        found = re.search(pattern, output, re.MULTILINE)
        if not found:
            sys.exit(f"not recorded: no line of the output matches {pattern}")
        figures.update(found.groupdict())
    return figures


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.M) if info.exists() else []
    return names[0] if names else platform.machine()


def record(name: str, command: list[str]) -> int:
    """Run a check. With RECORD=1 in the environment, keep its figures if it passes."""
    if not os.environ.get("RECORD"):
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    if not (check := checks().get(name)):
        sys.exit(f"evidence/checks.toml has no {name}, so that it cannot be recorded")
    file = ROOT / f"evidence/{name}.json"
    if dirty := git("status", "--porcelain", "--", *check["sources"]):
        sys.exit("\n".join(["not recorded: commit these first", *dirty]))
    before, commit, start = hash_of(check["sources"]), git("rev-parse", "HEAD")[0], time.time()
    output = ""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        assert run.stdout
        for line in run.stdout:
            print(line, end="", flush=True)
            output += line
    if run.returncode:
        # Whatever an earlier run found, it is not shown beside this failure.
        file.unlink(missing_ok=True)
    elif hash_of(check["sources"]) != before:
        sys.exit("not recorded: the sources have changed meanwhile")
    else:
        kept = {
            "check": name,
            "command": check["command"],
            "commit": commit,
            "date": time.strftime("%Y-%m-%d", time.gmtime(start)),
            "seconds": round(time.time() - start),
            "processor": processor(),
            "sources": before,
            "figures": figures_in(output, check.get("figures", [])),
        }
        file.write_text(json.dumps(kept, indent=1) + "\n")
    pages(write=True)
    return run.returncode


def result(name: str, check: dict[str, Any]) -> str:
    """Return the figures of a check or, for CHECK.FIGURE, one of them; or that it is owed."""
    name, _, figure = name.partition(".")
    file = ROOT / f"evidence/{name}.json"
    why = "; " + check["owed"] if "owed" in check else ""
    if not file.exists():
        return f"{OWED}: no run is on record{why}"
    kept = json.loads(file.read_text())
    run = f"{kept['date']}, commit {kept['commit'][:10]}"
    if kept["sources"] != hash_of(check["sources"]):
        return f"{OWED}: its sources have changed since its run of {run}{why}"
    if figure:
        return str(kept["figures"][figure])
    grouped = {
        key: re.sub(r"\b\d{5,}\b", lambda found: f"{int(found[0]):,}", value)
        for key, value in kept["figures"].items()
    }
    return f"{check['shows'].format(**grouped)} ({run}, {-(-kept['seconds'] // 60)} min)"


def render(text: str, table: Table) -> str:
    """Return a page with the figures of the records between its marks."""
    of_all = "<!-- evidence: all -->" in text

    def between(found: re.Match[str]) -> str:
        name = found[2]
        if name != "all":
            shown = result(name, table[name.partition(".")[0]])
            if shown.startswith(OWED) and not of_all:
                shown = "no run is on record yet"
        else:
            rows = [f"| {n} | `{c['command']}` | {result(n, c)} |" for n, c in table.items()]
            shown = "\n".join([HEAD, *rows])
        return f"{found[1]}\n\n{shown}\n\n{found[3]}"

    return MARKED.sub(between, text)


def pages(write: bool) -> int:
    """Compare all pages with their rendering, or write it; return the number of wrong pages."""
    table, wrong = checks(), 0
    for name in git("ls-files", "--", "*.md"):
        text = (ROOT / name).read_text()
        if (rendered := render(text, table)) == text:
            continue
        if write:
            (ROOT / name).write_text(rendered)
        else:
            wrong += 1
            print(f"{name} shows other figures than the records give: make evidence WRITE=1")
    owed = [name for name, check in table.items() if result(name, check).startswith(OWED)]
    print(
        f"{len(table) - len(owed)} checks are of these sources; owed: {', '.join(owed) or 'none'}"
    )
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    sys.exit(pages(write=sys.argv[1:] == ["--write"]))
