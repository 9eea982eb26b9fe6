"""A Llama in PyTorch with the names and the rotary convention of `LlamaForCausalLM`."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Cache = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network, named as in a Hugging Face Llama config."""

    vocab_size: int
    hidden_size: int = 128
    intermediate_size: int = 352
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    max_position_embeddings: int = 512
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def config(self) -> dict[str, object]:
        """The fields for config.json."""
        return asdict(self) | {
            "num_key_value_heads": self.num_attention_heads,
            "head_dim": self.head_dim,
        }


def rotary(positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """cos and sin (B, 1, T, D) of positions (B, T)."""
    powers = torch.arange(0, shape.head_dim, 2, device=positions.device) / shape.head_dim
    angles = positions[:, None, :, None].float() * (shape.rope_theta**-powers)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x (B, H, T, D); dimension i is paired with i + D/2."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.head_dim = shape.num_attention_heads, shape.head_dim
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(shape.hidden_size, shape.hidden_size, bias=False))

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past: Cache | None
    ) -> tuple[Tensor, Cache]:
        """x (B, T, C), past keys and values (B, H, S, D) -> output (B, T, C), both with S + T."""
        batch, length, width = x.shape
        split = (batch, length, self.heads, self.head_dim)
        q, k, v = (
            p(x).view(split).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        # Written out: on a CPU this trains faster than the fused kernel at these sizes.
        scores = q @ k.transpose(2, 3) * self.head_dim**-0.5 + mask
        out = scores.softmax(-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, width)), (k, v)


class MLP(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.mlp = MLP(shape)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past: Cache | None
    ) -> tuple[Tensor, Cache]:
        attended, cache = self.self_attn(self.input_layernorm(x), cos, sin, mask, past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), cache


class Body(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)


class Llama(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """The network; its output layer has the weights of the input embeddings."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = 0.02 if "embed" in name else weight.shape[1] ** -0.5
                nn.init.normal_(
                    weight, std=scale / (2 * shape.num_hidden_layers) ** 0.5 if deep else scale
                )

    def hidden(
        self, ids: Tensor, positions: Tensor, mask: Tensor, past: list[Cache] | None = None
    ) -> tuple[Tensor, list[Cache]]:
        """ids, positions (B, T) -> states (B, T, C), keys and values per layer (B, H, S + T, D).

        mask (B or 1, 1, T, S + T) is added to the attention scores.
        """
        x = self.model.embed_tokens(ids)
        cos, sin = rotary(positions, self.shape)
        caches = []
        for i, layer in enumerate(self.model.layers):
            x, cache = layer(x, cos, sin, mask, None if past is None else past[i])
            caches.append(cache)
        return self.model.norm(x), caches

    def logits(self, states: Tensor) -> Tensor:
        """States (..., C) -> logits (..., V)."""
        return functional.linear(states, self.model.embed_tokens.weight)
