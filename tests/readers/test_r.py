"""The reader in R against the library, on files of every kind, and its package: `make readers`."""

import math
import os
import re
import subprocess
import sys
import tarfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp
from published_kinds import ABOUT, RELEASED, ends_of_each

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples/readers/r"
LEVELS = ["0.5", "0.8", "0.95", "0.999"]

#: Reads each file at each level, and writes what it found; then sums, and refusals.
SCRIPT = """
source(commandArgs(TRUE)[1])
for (name in commandArgs(TRUE)[-1]) {
  for (level in c(LEVELS)) {
    rows <- read_geomdp(paste0(name, ".csv"), as.numeric(level))
    utils::write.csv(rows, paste0(name, "-", level, ".out"), row.names = FALSE, na = "")
  }
  invisible(summary(rows))
  if (name != "top") {
    grDevices::svg("plot.svg")  # the fonts of pdf() have no letters in full width
    plot(rows)
  }
}
cat(paste(c("labels:", labels_geomdp(read_geomdp("labels.csv"), "area")), collapse = "|"), "\\n")
flat <- read_geomdp("flat.csv")
print(unlist(sum_geomdp(flat, 1:6)))
print(unlist(sum_geomdp(flat, 2)))
# Backwards, the attributes of the rows are in another order.
margins <- read_geomdp("margins.csv")
margins <- margins[nrow(margins):1, ]
for (row in seq_len(nrow(margins))) {
  added <- tryCatch(sum_geomdp(margins, row)$estimate, error = function(refused) NA)
  is_sum <- any(margins[row, 1:2] == "all")
  stopifnot(if (is_sum) is.na(added) else added == margins$count[row])
}
rounded <- read_geomdp("rounded.csv")
print(unlist(sum_geomdp(rounded, 1:6)))
for (name in c("groups", "top", "bounds", "tree")) {
  rows <- read_geomdp(paste0(name, ".csv"))
  cat(name, tryCatch(sum_geomdp(rows, 1:2), error = conditionMessage), "\\n")
}
cat("0,0\\n", file = "flat.csv", append = TRUE)
cat(tryCatch(read_geomdp("flat.csv"), error = conditionMessage), "\\n")
""".replace("LEVELS", ", ".join(f'"{level}"' for level in LEVELS))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("r")
    for name, release in RELEASED.items():
        release.save(folder / f"{name}.csv")
    (folder / "script.R").write_text(SCRIPT)
    done = subprocess.run(
        ["Rscript", "--vanilla", "script.R", PACKAGE / "R/geomdp.R", *RELEASED],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return folder, done.stdout.splitlines()


@pytest.mark.parametrize("name", RELEASED)
def test_rows_and_intervals_are_those_of_the_library(
    name: str, read: tuple[Path, list[str]]
) -> None:
    release, labels = RELEASED[name], list(RELEASED[name].design.levels)
    for level in LEVELS:
        found = pd.read_csv(
            read[0] / f"{name}-{level}.out", dtype=str, keep_default_na=False, encoding="utf-8"
        )
        assert found.iloc[:, len(labels)].map(float).tolist() == [*release.to_dict().values()]
        keys = release.frame[labels]
        for label in labels:
            own = keys[label].map(lambda key: "" if pd.isna(key) else str(key)).tolist()
            if keys[label].dtype.kind in "if":
                assert found[label].map(float).tolist() == [*map(float, own)]
            else:
                # R writes TRUE for true.
                texts = found[label].str.title() if keys[label].dtype == bool else found[label]
                assert texts.tolist() == own
        if name == "top":
            assert "lower" not in found
            continue
        ends = found[["lower", "upper"]].map(lambda end: float(end.replace("Inf", "inf")))
        wanted = ends_of_each(release, 1 - Fraction(level))
        found = ends.to_numpy()
        assert (found[:, 0] <= wanted[:, 0]).all()
        assert (found[:, 1] >= wanted[:, 1]).all()
        # At a bound the library says that the true count is within the bounds.
        assert np.abs(found - wanted).max() <= (math.inf if "bounds" in name else 0)


def test_sums_are_those_of_the_library_or_refused(
    read: tuple[Path, list[str]],
) -> None:
    text = "\n".join(read[1])
    assert "labels:|all|Northern part|all/South|A|all/South/South|Harbour" in text
    counts = RELEASED["flat"].counts.reshape(-1)
    rows = [line.split() for line in read[1] if line.split() and line.split()[0][0].isdigit()]
    six, one, rounded = ([*map(float, row)] for row in rows[-3:])
    assert six[0] == counts.sum()
    assert one[0] == counts[1]
    whole = RELEASED["flat"].total(alpha=0.05)
    assert six[1:] == whole[["lower", "upper"]].iloc[0].tolist()
    of_rounded = RELEASED["rounded"].total(alpha=0.05)
    assert rounded[1:] == of_rounded[["lower", "upper"]].iloc[0].tolist()
    assert "counts are rounded to multiples of 10" in text
    assert f"id: {RELEASED['flat'].id}, the same" in text
    assert "Noisy counts: flat\n" in text
    # A title comes before a label, and the rest below it.
    named = sum(each.about == ABOUT for each in RELEASED.values())
    assert text.count(f"Noisy counts: {ABOUT['title']}\n") == named > 0
    assert text.count(f"period: {ABOUT['period']}\n") == named
    assert "groups these counts cannot be added" in text
    assert "top these counts cannot be added" in text
    assert "bounds counts with bounds cannot be added" in text
    assert "tree rows that are sums themselves cannot be added" in text
    assert "the rows of flat.csv are not those of its description" in text


def built(folder: Path, path: str, **environment: str) -> str:
    """Build the package, and return the source of its vignette's page."""
    own = {name: os.environ[name] for name in ("HOME", "LANG", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        ["R", "CMD", "build", PACKAGE],
        cwd=folder,
        env={**own, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [package] = folder.glob("*.tar.gz")
    with tarfile.open(package) as members:
        page = members.extractfile("geomdp/inst/doc/geomdp.html")
        assert page is not None
        return page.read().decode()


def test_vignette_releases_by_the_command_and_by_reticulate_and_reads_back(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    page = built(tmp_path, path, RETICULATE_PYTHON=sys.executable)
    assert "a release that the package ships" not in page
    assert "## Noisy counts: Applicants at Berkeley, 1973" in page
    sums = [[*map(int, row)] for row in re.findall(r"## 1 +(\d+) +(\d+) +(\d+)\b", page)]
    # 12 cells of the first release and 24 of the second, at epsilon 1/2.
    assert [(upper - lower) // 2 for _, lower, upper in sums] == [19, 27]
    assert len({*re.findall("## id: ([0-9a-f]{32}), ", page)}) == 2


def test_package_passes_the_check_of_r_without_python(tmp_path: Path) -> None:
    path = os.pathsep.join(
        part
        for part in os.environ["PATH"].split(os.pathsep)
        if not (Path(part) / "geomdp").exists()
    )
    page = built(tmp_path, path)
    assert "a release that the package ships" in page
    shipped = geomdp.read(PACKAGE / "inst/extdata/admissions.csv")
    assert f"## id: {shipped.id}, " in page
    [package] = tmp_path.glob("*.tar.gz")
    done = subprocess.run(
        ["R", "CMD", "check", "--no-manual", "--ignore-vignettes", package.name],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.rstrip().endswith("\nStatus: OK"), done.stdout
