"""Turn a training run into the model folder that transformers, vLLM and onnxruntime load.

python -m tools.bundled.export --run DIR --out gatekeeper/bundled/model
"""

import argparse
import json
from pathlib import Path

import onnx
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.export import Dim

from tools.bundled.network import Cache, Llama, Shape
from tools.bundled.tokenizer import CHAT_TEMPLATE, END, PAD, SPECIALS, TASK, load_tokenizer


class WithCache(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """The network as one function of tensors, for ONNX.

    input_ids, position_ids (B, T) int64; attention_mask (B, S + T) int64, 1 for real tokens, over
    cached and new positions; past keys and values of each layer (B, H, S, D) -> logits of the last
    position (B, V), keys and values of each layer (B, H, S + T, D). Padding may be on either side.
    Each of the keys and values is a tensor of its own: one tensor of all would be copied whole, to
    be taken apart and put together, for every token.
    """

    def __init__(self, model: Llama) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, position_ids: Tensor, attention_mask: Tensor, past: list[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        new, total = input_ids.shape[1], attention_mask.shape[1]
        query = torch.arange(new)[:, None] + (total - new)
        seen = (torch.arange(total)[None] <= query)[None] & (attention_mask[:, None] > 0)
        mask = (~seen)[:, None].float() * -1e9
        states, cache = self.model.hidden(input_ids, position_ids, mask, past)
        return self.model.logits(states[:, -1]), cache


def export_onnx(model: Llama, path: Path) -> None:
    """Write the network with its key-value cache as one ONNX file."""
    shape = model.shape
    layers = range(shape.num_hidden_layers)
    size = (3, shape.num_attention_heads, 5, shape.head_dim)
    past = [(torch.zeros(size), torch.zeros(size)) for _ in layers]
    cached = [f"{part}_{i}" for i in layers for part in ("keys", "values")]
    ids = torch.ones(3, 4, dtype=torch.int64)
    both = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    of_cache = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}
    torch.onnx.export(
        WithCache(model).eval(),
        (ids, ids.clone(), torch.ones(3, 9, dtype=torch.int64), past),
        path,
        input_names=["input_ids", "position_ids", "attention_mask", *(f"past_{n}" for n in cached)],
        output_names=["logits", *cached],
        dynamic_shapes=(both, both, both, [(of_cache, of_cache) for _ in layers]),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    exported = onnx.load(path)
    for part in (exported, exported.graph, *exported.graph.node, *exported.graph.value_info):
        del part.metadata_props[:]  # source lines and paths of this machine
    onnx.save(exported, path)


def last_figures(log: Path) -> dict[str, object]:
    """Step, minutes, tokens and mean loss from the last line of a training log."""
    line = json.loads(log.read_text().splitlines()[-1])
    return {key: line[key] for key in ("step", "minutes", "tokens", "loss")}


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(run: Path, out: Path) -> None:
    """Write the whole model folder."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(run)
    shape = Shape(vocab_size=tokenizer.get_vocab_size())
    model = Llama(shape)
    model.load_state_dict(load_file(run / "model.safetensors"))
    tokenizer.save(str(out / "tokenizer.json"))
    save_file(model.state_dict(), out / "model.safetensors", {"format": "pt"})
    (out / "model.safetensors").chmod(
        0o644
    )  # safetensors writes files that only the owner can read
    export_onnx(model, out / "model.onnx")

    ids = {
        "bos_token_id": tokenizer.token_to_id(TASK),
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(PAD),
    }
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"}
    fixed = {
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    write_json(out / "config.json", config | shape.config() | fixed | ids)
    write_json(out / "generation_config.json", ids | {"do_sample": False})
    special = {"bos_token": TASK, "eos_token": END, "pad_token": PAD}
    write_json(
        out / "special_tokens_map.json", special | {"additional_special_tokens": SPECIALS[1:2]}
    )
    write_json(
        out / "tokenizer_config.json",
        special
        | {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "additional_special_tokens": SPECIALS[1:2],
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": shape.max_position_embeddings,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    write_json(out / "training.json", last_figures(run / "train.jsonl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder of the training run")
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    args = parser.parse_args()
    export(args.run, args.out)


if __name__ == "__main__":
    main()
