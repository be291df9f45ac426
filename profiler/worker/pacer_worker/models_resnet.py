"""Residual convolutional networks (He et al., 2016): ResNet-18 and ResNet-50 v1.5."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Config
from pacer_worker.models_layers import Batch, State
from pacer_worker.models_part import Network, Part, Sample, integers
from pacer_worker.models_vision import CLASSES, PIXELS
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import Linear
from pacer_worker.weights import Constant, Normal, Weighted

# By depth: the number of blocks in each of four groups, and whether they are bottlenecks.
DEPTHS = {18: ((2, 2, 2, 2), False), 50: ((3, 4, 6, 3), True)}


def resnet(config: Config, site: Site, depth: int) -> Network:
    groups, bottleneck = DEPTHS[depth]
    pixels = PIXELS // 4
    parts = [Part("stem", lambda: Stem(site), ((64, pixels, pixels),))]
    channels = 64
    for group, blocks in enumerate(groups):
        width = 64 << group
        for block in range(blocks):
            stride = 2 if group > 0 and block == 0 else 1
            outputs = width * (4 if bottleneck else 1)
            pixels //= stride
            args = (site, f"block_{group}_{block}", channels, width, outputs, stride)
            make = lambda args=args: Block(*args, bottleneck)  # noqa: E731
            parts.append(Part(args[1], make, ((outputs, pixels, pixels),), layer=True))
            channels = outputs
    parts.append(Part("head", lambda: Head(site, channels), ((),)))

    def sample(generator: torch.Generator, device: torch.device) -> Sample:
        image = torch.randn(3, PIXELS, PIXELS, generator=generator, device=device)
        return {"image": image, "label": integers(generator, device, CLASSES)}

    return Network(parts, sample, {})


class Convolution(Weighted):
    """A convolution without bias and a batch norm without running statistics."""

    def __init__(self, site: Site, name: str, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.stride, self.padding = stride, size // 2
        shape = (outputs, inputs, size, size)
        self.declare("weight", f"{name}.weight", shape, Normal(inputs * size * size), site.device)
        self.declare("scale", f"{name}.scale", (outputs,), Constant(1.0), site.device)
        self.declare("shift", f"{name}.shift", (outputs,), Constant(0.0), site.device)

    def forward(self, x: Tensor) -> Tensor:
        x = F.conv2d(x, self.weight, stride=self.stride, padding=self.padding)
        return F.batch_norm(x, None, None, self.scale, self.shift, training=True)


class Stem(nn.Module):
    def __init__(self, site: Site) -> None:
        super().__init__()
        self.convolution = Convolution(site, "stem", 3, 64, 7, 2)

    def forward(self, state: State, batch: Batch) -> State:
        x = batch["image"]
        if x.is_cuda:  # the layout that tensor cores read
            x = x.contiguous(memory_format=torch.channels_last)
        x = F.relu(self.convolution(x))
        return (F.max_pool2d(x, 3, stride=2, padding=1),)


class Block(nn.Module):
    """Two convolutions, or three with a narrow middle, beside a shortcut."""

    def __init__(
        self, site: Site, name: str, inputs: int, width: int, outputs: int, stride: int, bottleneck: bool
    ) -> None:
        super().__init__()
        if bottleneck:  # v1.5 has the stride in the 3x3 convolution
            shapes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        else:
            shapes = [(inputs, width, 3, stride), (width, outputs, 3, 1)]
        self.path = nn.ModuleList([Convolution(site, f"{name}.{i}", *shape) for i, shape in enumerate(shapes)])
        project = stride > 1 or inputs != outputs
        self.shortcut = Convolution(site, f"{name}.shortcut", inputs, outputs, 1, stride) if project else None

    def forward(self, state: State, batch: Batch) -> State:
        (x,) = state
        y = x
        for i, convolution in enumerate(self.path):
            y = convolution(F.relu(y) if i else y)
        return (F.relu(y + (x if self.shortcut is None else self.shortcut(x))),)


class Head(nn.Module):
    def __init__(self, site: Site, channels: int) -> None:
        super().__init__()
        self.classes = Linear(site, "head.classes", channels, CLASSES, True)

    def forward(self, state: State, batch: Batch) -> State:
        scores = self.classes(state[0].mean((2, 3)))
        return (F.cross_entropy(scores.float(), batch["label"]),)
