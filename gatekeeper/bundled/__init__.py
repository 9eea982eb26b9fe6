"""The bundled tiny language model and its tasks; see README.md in this folder."""

from pathlib import Path

__all__ = ["CONTEXT_LENGTH", "MODEL", "TASKS"]

MODEL = Path(__file__).parent / "model"
"""Hugging Face folder with the weights, the tokenizer and model.onnx."""

TASKS = Path(__file__).parent / "tasks.jsonl"
"""Held-out tasks that no training prompt can equal."""

CONTEXT_LENGTH = 512
"""Prompt and output together, tokens."""
