"""Train the bundled model from random weights and export it to DIR/model.

    python -m tools.bundled.train --out DIR --steps 4400 --seed 0

One process, an endless stream of generated tasks, loss on the answers only. The learning rate
follows the step count: the same seed and number of steps see the same data in the same order.
"""

import argparse
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy

from tools.bundled.export import export
from tools.bundled.network import Llama, Shape
from tools.bundled.tasks import FAMILIES, KINDS, LEVELS, draw, held_out, training_stream
from tools.bundled.tokenizer import ANSWER, END, PAD, TASK, train_tokenizer

IGNORE = -100
STRIDE = 16  # lengths are rounded up to a multiple of this many tokens


def encode(tokenizer: Tokenizer, prompt: str, answer: str) -> tuple[list[int], int]:
    """Token ids of one sample and how many of them are its prompt."""
    head = tokenizer.encode(f"{TASK}{prompt}{ANSWER}").ids
    return head + tokenizer.encode(answer + END).ids, len(head)


def batches(
    tokenizer: Tokenizer, seed: int, tokens: int, pool: int = 4096
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (ids, targets), both (B, T) with B * T about `tokens`, of samples alike in length."""
    rng = random.Random(seed)
    stream = training_stream(rng)
    pad = tokenizer.token_to_id(PAD)
    while True:
        samples = [encode(tokenizer, d.prompt, d.answer) for _, _, d in islice(stream, pool)]
        samples.sort(key=lambda sample: len(sample[0]))
        groups, start = [], 0
        while start < len(samples):
            width = -(-len(samples[min(start + 8, pool - 1)][0]) // STRIDE) * STRIDE
            group = samples[start : start + max(1, tokens // width)]
            groups.append(group)
            start += len(group)
        rng.shuffle(groups)
        for group in groups:
            width = -(-max(len(ids) for ids, _ in group) // STRIDE) * STRIDE
            rows = np.full((len(group), width + 1), pad)
            goal = np.full((len(group), width + 1), IGNORE)
            for i, (ids, prompt) in enumerate(group):
                rows[i, : len(ids)] = ids
                goal[i, prompt : len(ids)] = ids[prompt:]
            yield torch.from_numpy(rows[:, :-1].copy()), torch.from_numpy(goal[:, 1:].copy())


def answer_loss(model: Llama, ids: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy in nats over answer tokens."""
    length = ids.shape[1]
    mask = torch.full((length, length), -1e9).triu(1)[None, None]
    states, _ = model.hidden(ids, torch.arange(length)[None], mask)
    return cross_entropy(
        model.logits(states).flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE
    )


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Linear warm-up over the first 2 % of the steps, then a cosine to 2 % of the peak."""
    warmup = max(1, steps // 50)
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (
        0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
    )


def greedy(model: Llama, tokenizer: Tokenizer, prompts: list[str], limit: int = 200) -> list[str]:
    """Greedy answers, prompts of equal length decoded together."""
    end = tokenizer.token_to_id(END)
    by_length: dict[int, list[int]] = {}
    encoded = [tokenizer.encode(f"{TASK}{p}{ANSWER}").ids for p in prompts]
    for i, ids in enumerate(encoded):
        by_length.setdefault(len(ids), []).append(i)
    answers = [""] * len(prompts)
    for length, members in by_length.items():
        ids = torch.tensor([encoded[i] for i in members])
        positions, mask = (
            torch.arange(length)[None],
            torch.full((length, length), -1e9).triu(1)[None, None],
        )
        past = None
        out: list[Tensor] = []
        done = torch.zeros(len(members), dtype=torch.bool)
        while len(out) < limit and not done.all():
            states, past = model.hidden(ids, positions, mask, past)
            ids = model.logits(states[:, -1:]).argmax(-1)
            out.append(ids)
            done |= ids[:, 0] == end
            positions = torch.tensor([[length + len(out) - 1]])
            mask = torch.zeros(1, 1, 1, length + len(out))
        for i, row in zip(members, torch.cat(out, 1).tolist(), strict=True):
            answers[i] = tokenizer.decode(row[: row.index(end)] if end in row else row)
    return answers


def evaluate(
    model: Llama, tokenizer: Tokenizer, per_cell: int, seed: int
) -> dict[str, list[float]]:
    """Greedy error rate on held-out prompts, by family and level.

    Code counts as right only if it is the reference, which is stricter than its tests.
    """
    rng = random.Random(seed)
    cells, drafts = [], []
    for kind in KINDS:
        for family in FAMILIES[kind]:
            for level in LEVELS:
                wanted = per_cell
                while wanted:
                    draft = draw(rng, kind, family, level)
                    if held_out(draft.prompt):
                        cells.append((family, level))
                        drafts.append(draft)
                        wanted -= 1
    answers = greedy(model, tokenizer, [d.prompt for d in drafts])
    wrong: Counter[tuple[str, int]] = Counter()
    for cell, draft, answer in zip(cells, drafts, answers, strict=True):
        goal = draft.answer if draft.kind == "code" else f"\\boxed{{{draft.gold}}}"
        wrong[cell] += not answer.endswith(goal)
    return {
        family: [wrong[family, level] / per_cell for level in LEVELS]
        for families in FAMILIES.values()
        for family in families
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for checkpoints and the log"
    )
    parser.add_argument("--steps", type=int, default=4_400)
    parser.add_argument(
        "--tokens", type=int, default=6144, help="tokens per batch, padding included"
    )
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)

    tokenizer = train_tokenizer(args.seed)
    tokenizer.save(str(args.out / "tokenizer.json"))
    model = Llama(Shape(vocab_size=tokenizer.get_vocab_size()))
    # Muon for the matrices inside the layers, AdamW for embeddings and norms: in a short trial this
    # learned faster than AdamW alone.
    inner = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    outer = [p for name, p in model.named_parameters() if p.dim() < 2 or "embed" in name]
    muon = torch.optim.Muon(inner, weight_decay=0.05, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(outer, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    log = (args.out / "train.jsonl").open("w", buffering=1)
    started, seen, losses = time.monotonic(), 0, []
    data = islice(batches(tokenizer, args.seed + 1, args.tokens), args.steps)
    for step, (ids, targets) in enumerate(data):
        for group in [*muon.param_groups, *adam.param_groups]:
            group["lr"] = learning_rate(step, args.steps, args.lr)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = answer_loss(model, ids, targets)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        muon.step()
        adam.step()
        seen += ids.numel()
        losses.append(loss.item())
        done = step + 1
        quarter = done % max(1, args.steps // 4) == 0
        if done % 100 == 0 or quarter:
            line: dict[str, object] = {
                "step": done,
                "minutes": round((time.monotonic() - started) / 60, 2),
                "tokens": seen,
                "loss": round(float(np.mean(losses)), 4),
            }
            losses.clear()
            save_file(model.state_dict(), args.out / "model.safetensors")
            if quarter:
                with torch.no_grad():
                    line["errors"] = evaluate(model, tokenizer, per_cell=4, seed=args.seed + 2)
            log.write(json.dumps(line) + "\n")
    export(args.out, args.out / "model")


if __name__ == "__main__":
    main()
