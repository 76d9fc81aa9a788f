"""Options that several commands share."""

from perfmodel.checks import positive_integer

#: Most branches worth asking about: the graph of a launch has one for each.
DEGREE_LIMIT = 1024
ROUNDS_LIMIT = 10_000


def add_json(parser):
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_borrow(parser):
    """``--parameters-from DEVICE``."""
    parser.add_argument(
        "--parameters-from", metavar="DEVICE",
        help="take the fitted parameters of this chip (uncalibrated for yours)")


def device_of(name, donor=None):
    """The device of a name or path, with another's parameters if a donor is named."""
    from perfmodel.device_files import load_device
    from perfmodel.gpu.parameters import borrowed

    device = load_device(name)
    return borrowed(device, load_device(donor)) if donor else device


def degree_of(text):
    """A concurrency degree from text."""
    return positive_integer("--degree", text, DEGREE_LIMIT)


def add_protocol(parser):
    """Add --rounds and --cache."""
    parser.add_argument("--rounds", metavar="N", help="launches back to back on each branch"
                        " (3; 1 with --cache cold)")
    parser.add_argument("--cache", choices=("warm", "cold"), default="warm",
                        help="whether L2 holds what earlier launches left, or nothing (warm)")


def rounds_of(text, cold):
    """Launches back to back on each branch, from text or as they were measured."""
    return positive_integer("--rounds", text or ("1" if cold else "3"), ROUNDS_LIMIT)


def kernels_of(path, device, dtype):
    """Candidates of a CSV file that fit the device, or of the rules if there is no file."""
    from perfmodel.gpu.kernels import infeasible, kernel_space, kernels_from
    from perfmodel.measurements.table import read_kernels_for

    if path is None:
        return kernel_space(device, dtype)
    kernels = kernels_from(read_kernels_for(path, dtype), dtype)
    reasons = infeasible(device, kernels)
    if (reasons != "").all():
        raise ValueError(f"{path}: no kernel fits {device.name}; the first: {reasons[0]}")
    return kernels[reasons == ""]
