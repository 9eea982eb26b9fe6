"""The tokenizer: byte-level BPE, every digit a token of its own, four special tokens."""

import random
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.bundled.tasks import training_stream

TASK, ANSWER, END, PAD = "<|task|>", "<|answer|>", "<|end|>", "<|pad|>"
SPECIALS = [TASK, ANSWER, END, PAD]
# One user message becomes exactly the prefix that the model was trained on.
CHAT_TEMPLATE = (
    "<|task|>"
    "{{ (messages | selectattr('role', 'equalto', 'user') | list)[-1]['content'] }}"
    "<|answer|>"
)


def train_tokenizer(seed: int, samples: int = 20_000, vocab_size: int = 640) -> Tokenizer:
    """A tokenizer trained on the first `samples` tasks of the training stream."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    drafts = (draft for _, _, draft in islice(training_stream(random.Random(seed)), samples))
    tokenizer.train_from_iterator((text for d in drafts for text in (d.prompt, d.answer)), trainer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))
