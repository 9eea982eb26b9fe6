"""Makes a page of each executed notebook: cells as code, their outputs as they were stored.

A notebook becomes the page of the same name. Nothing is executed, and no package is needed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs with the files of the site."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb") and file.abs_src_path:
            name = file.src_uri.removesuffix(".ipynb") + ".md"
            notebook = json.loads(Path(file.abs_src_path).read_text(encoding="utf-8"))
            content = "\n\n".join(_parts(notebook["cells"])) + "\n"
            files.append(File.generated(config, name, content=content))
    return files


def _parts(cells: list[dict[str, Any]]) -> Iterator[str]:
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
        elif cell["cell_type"] == "code":
            yield f"```python\n{source}\n```"
            yield from map(_output, cell["outputs"])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="notebook-output">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```"
