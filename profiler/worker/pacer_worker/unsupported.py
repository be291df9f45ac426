"""The exception for a plan that cannot run here."""


class Unsupported(Exception):
    """The installed torch, the device or the network cannot run this plan.

    The text names the missing feature and what would provide it.
    """
