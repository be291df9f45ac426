"""The one exception a plan that cannot run here is refused with."""


class Unsupported(Exception):
    """The installed torch, the device or the network cannot run this plan.

    The text names the feature and says what has it.
    """
