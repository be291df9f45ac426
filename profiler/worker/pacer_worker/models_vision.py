"""Vision transformers (Dosovitskiy et al., 2021)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Config, require_shape
from pacer_worker.models_decoder import Positions
from pacer_worker.models_layers import Batch, Layer, Norm, State, Style
from pacer_worker.models_part import Network, Part, Sample, integers
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import Linear
from pacer_worker.unsupported import Unsupported
from pacer_worker.weights import Constant, Weighted

PIXELS = 224
CLASSES = 1000


def vision(config: Config, site: Site) -> Network:
    model, seq = config.model, config.seq_len
    require_shape(model, "layers", "hidden", "ffn", "heads")
    side, class_token = _grid(model.name, seq)
    patch = PIXELS // side
    classes = model.vocab or CLASSES
    style = Style(gated=model.gated_mlp)
    state = ((seq // site.tp.size if site.tp.sequence else seq, model.hidden),)

    parts = [Part("embed", lambda: Embed(site, model.hidden, seq, patch, class_token), state)]
    parts += [
        Part(f"layer_{i}", lambda i=i: Layer(site, f"layer_{i}", model, style), state, layer=True)
        for i in range(model.layers)
    ]
    parts.append(Part("head", lambda: Head(site, model.hidden, classes, class_token), ((),)))

    def sample(generator: torch.Generator, device: torch.device) -> Sample:
        image = torch.randn(3, side * patch, side * patch, generator=generator, device=device)
        return {"image": image, "label": integers(generator, device, classes)}

    return Network(parts, sample, {}, fused_attention=True)


def _grid(name: str, seq: int) -> tuple[int, bool]:
    """Returns the width of the image in patches, and whether a class token comes first."""
    for tokens, class_token in ((seq - 1, True), (seq, False)):
        side = math.isqrt(max(tokens, 0))
        if side * side == tokens and 1 <= side <= PIXELS:
            return side, class_token
    raise Unsupported(f"model {name}: seq_len={seq} is neither a square number of patches nor one more, such as 197")


class Embed(Weighted):
    """Patches as vectors, after an optional class token, plus position vectors."""

    def __init__(self, site: Site, hidden: int, seq: int, patch: int, class_token: bool) -> None:
        super().__init__()
        self.tp, self.patch, self.dtype = site.tp, patch, site.dtype
        self.project = Linear(site, "embed.project", 3 * patch * patch, hidden, True)
        self.positions = Positions(site, "embed.positions", seq, hidden)
        self.register_parameter("token", None)
        if class_token:
            self.declare("token", "embed.token", (hidden,), Constant(0.0), site.device)

    def forward(self, state: State, batch: Batch) -> State:
        patches = F.unfold(batch["image"], self.patch, stride=self.patch).transpose(1, 2)
        x = self.project(patches)
        if self.token is not None:
            x = torch.cat((self.token.to(x.dtype).expand(len(x), 1, -1), x), 1)
        return (self.positions(self.tp.split_tokens(x)).to(self.dtype),)


class Head(nn.Module):
    """The class scores from the class token, or from the mean of all tokens without one, and the loss."""

    def __init__(self, site: Site, hidden: int, classes: int, class_token: bool) -> None:
        super().__init__()
        self.tp, self.class_token = site.tp, class_token
        self.norm = Norm(site, "head.norm", hidden, rms=False)
        self.classes = Linear(site, "head.classes", hidden, classes, True)

    def forward(self, state: State, batch: Batch) -> State:
        x: Tensor = self.tp.join_tokens(self.norm(state[-1]))
        x = x[:, 0] if self.class_token else x.mean(1)
        return (F.cross_entropy(self.classes(x).float(), batch["label"]),)
