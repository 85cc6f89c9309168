"""Run the notebooks, all or those named, and fail on any error or warning in them.

Each runs in a kernel of this interpreter, in the notebook's folder. The file stays unchanged,
without outputs; a copy with the outputs goes to dist/notebooks, for the site. Every notebook ends
with assertions.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "examples/notebooks"
OUTPUT = ROOT / "dist/notebooks"
#: Time limit for a cell, in seconds.
SECONDS = 110


class ThisInterpreter(KernelSpecManager):
    """Offers only one kernel, that of this interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the specification of the kernel."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        command += ["--InlineBackend.figure_formats=svg"]
        return KernelSpec(argv=command, display_name=kernel_name, language="python")


def run(path: Path) -> str | None:
    """Return the error of a notebook, or its warnings, or None."""
    notebook = nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(path.parent)}}
    with tempfile.TemporaryDirectory() as sockets:
        manager = AsyncKernelManager(
            kernel_spec_manager=ThisInterpreter(), transport="ipc", ip=f"{sockets}/kernel"
        )
        try:
            NotebookClient(notebook, km=manager, timeout=SECONDS, resources=place).execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return str(error)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    if warnings := "".join(each.text for each in outputs if each.get("name") == "stderr"):
        return warnings
    nbformat.write(notebook, OUTPUT / path.name)  # type: ignore[no-untyped-call]
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them unless given")
    paths = parser.parse_args().notebooks or sorted(NOTEBOOKS.glob("*.ipynb"))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    failed = 0
    for path in paths:
        start = time.perf_counter()
        error = run(path)
        seconds = time.perf_counter() - start
        print(f"{path.name}: {'failed' if error else 'ran'} in {seconds:.1f} s", flush=True)
        if error:
            print(error, file=sys.stderr)
            failed += 1
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
