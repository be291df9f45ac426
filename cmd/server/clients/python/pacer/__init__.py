"""Client of the HTTP API of pacer serve."""

from . import types
from .client import Client, Error

__all__ = ["Client", "Error", "types"]
