"""An app's team publishes event counts as they come, and totals of any span, at one epsilon.

The events are deaths in the Crimean War and a step is a month; an app has a day.

    python examples/stream_of_events.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

from geomdp.tables import plot
from geomdp.tables.streams import Stream

EVENTS = Path(__file__).parent / "data/crimea_1854.csv"
CAUSES = ["disease", "wounds", "other"]


def main(folder: Path) -> None:
    events = pd.read_csv(EVENTS)
    counts = events[CAUSES].to_numpy()  # a row for each step
    for step in range(len(events)):  # one job a step, which may run again
        stream = Stream.open(folder / "stream.jsonl", horizon=24, epsilon="0.1")
        stream.release(step, counts[: step + 1])

    steps = stream.table(0, len(events), cells={"cause": CAUSES})
    print(steps.frame.pivot(index="step", columns="cause", values="count")[CAUSES].to_string())
    for start in (0, 12):
        span, (lower, upper) = (start, start + 12), stream.interval(start, start + 12, alpha=0.05)
        for cause, total, least, most in zip(
            CAUSES, stream.total(*span), lower, upper, strict=True
        ):
            print(f"{events['month'][start]} and 11 months on: {total} of {cause} ({least}-{most})")
    print(f"privacy loss of one event, in all of this: {stream.privacy_loss()}")

    steps.save(folder / "steps.csv")
    disease = stream.table(0, len(events), cells={"cause": CAUSES}).frame.query(
        "cause == 'disease'"
    )
    axes = plot.histogram(stream.mechanism, disease["count"], labels=events["month"])
    axes.set(xlabel="deaths by disease")
    pyplot.savefig(folder / "steps.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
