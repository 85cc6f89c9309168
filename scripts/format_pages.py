"""Write what the pages of the format say of each field: its row, and its part of the schema.

scripts/format_pages.py            compare docs/format.md and docs/format.schema.json
scripts/format_pages.py --write    write them
"""

import json
import sys
from pathlib import Path

from geomdp.tables._facts.fields import FIELDS

DOCS = Path(__file__).resolve().parents[1] / "docs"


def pages() -> dict[Path, str]:
    """Return the text of each page as the table of fields has it."""
    page, schema = DOCS / "format.md", DOCS / "format.schema.json"
    before, head, rest = page.read_text().partition("| field | value |\n|---|---|\n")
    rows = "".join(f"| `{name}` | {field.meaning} |\n" for name, field in FIELDS.items())
    after = rest[rest.index("\n\n") :]
    whole = json.loads(schema.read_text())
    release = whole["$defs"]["release"]
    release["required"] = list(FIELDS)
    release["properties"] = {name: field.schema for name, field in FIELDS.items()}
    return {
        page: before + head + rows.rstrip("\n") + after,
        schema: json.dumps(whole, indent=2, ensure_ascii=False) + "\n",
    }


def main() -> int:
    write, code = sys.argv[1:] == ["--write"], 0
    for path, text in pages().items():
        if write:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"docs/{path.name} is not what the fields say: scripts/format_pages.py --write")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
