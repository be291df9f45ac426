"""The exception for a plan that cannot run here."""


class Unsupported(Exception):
    """The installed torch, the device or the network cannot run this plan.

    The text names the feature and says what has it.
    """
