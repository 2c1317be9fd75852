"""Notebooks as pages: executed from the top, with their outputs."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

#: Maximum execution time of a cell, seconds.
_PATIENCE_S = 600
#: Selects inline plots, whatever backend is set elsewhere.
_DRAWS = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def executed(path: Path, folder: Path) -> Any:
    """Execute a notebook from the top in a folder, and return it with its outputs.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        For a cell that fails.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=_PATIENCE_S, kernel_name="python3", resources=resources
    )
    with TemporaryDirectory(prefix="corridor-") as sockets:
        # Use private files as transport: the kernel warns about TCP.
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{sockets}/kernel"
        client.execute(env=os.environ | _DRAWS)
    return notebook


def page(notebook: Any, images: Path, prefix: str) -> str:
    """Return an executed notebook as Markdown, and write its images into a folder.

    An image's alternative text is the comment at the top of its cell.
    """
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        words = cell.source.partition("\n")[0].removeprefix("# ")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{prefix}-{cell.id}.png"
                (images / name).write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![{words}](../images/plots/{name})")
            else:
                text = output.get("text") or data.get("text/plain", "")
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
