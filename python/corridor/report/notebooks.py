"""Notebooks as pages: run from the top, with what their cells gave."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

#: Longest that a cell may take, seconds.
_PATIENCE_S = 600
#: Draws into the notebook, whatever draws elsewhere.
_DRAWS = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def executed(path: Path, folder: Path) -> Any:
    """Return a notebook with what its cells gave, run from the top in a folder.

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
        # In files that nobody else can open: of TCP the kernel warns.
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{sockets}/kernel"
        client.execute(env=os.environ | _DRAWS)
    return notebook


def page(notebook: Any, images: Path, prefix: str) -> str:
    """Return an executed notebook as Markdown, and leave its pictures in a folder.

    A picture's words are the comment that its cell begins with.
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
